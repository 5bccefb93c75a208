#include "sim/determinism.hpp"

#include <algorithm>

namespace leeway::sim {

namespace {

std::optional<std::uint64_t> first_difference(const Trace& a, const Trace& b) {
  const auto [in_a, in_b] =
      std::mismatch(a.kept().begin(), a.kept().end(), b.kept().begin(), b.kept().end());
  if (in_a == a.kept().end() && in_b == b.kept().end()) return std::nullopt;
  return static_cast<std::uint64_t>(in_a - a.kept().begin());
}

std::string words_of(const Trace& trace, std::uint64_t step) {
  return trace.steps() <= step ? "the run has ended" : trace.told();
}

}  // namespace

std::optional<Difference> compare_runs(const TracedRun& run) {
  // What differs may differ elsewhere the next time: then the new place is asked for.
  constexpr int kAttempts = 4;
  Difference difference;
  std::optional<std::uint64_t> asked;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Trace first = run({.keep = true, .tell_step = asked});
    const Trace second = run({.keep = true, .tell_step = asked});
    const auto step = first_difference(first, second);
    if (!step) break;
    difference.step = *step;
    if (step == asked) return Difference{*step, words_of(first, *step), words_of(second, *step)};
    asked = step;
  }
  if (!asked) return std::nullopt;
  difference.first = difference.second = "not the same when it was run again to tell it";
  return difference;
}

}  // namespace leeway::sim
