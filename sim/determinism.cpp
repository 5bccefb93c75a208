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

std::string description_of(const Trace& trace, std::uint64_t step) {
  return trace.steps() <= step ? "the run has ended" : trace.description();
}

}  // namespace

std::optional<Difference> compare_runs(const TracedRun& run) {
  // The first difference may move between attempts; the next attempt describes its latest place.
  constexpr int kAttempts = 4;
  Difference difference;
  std::optional<std::uint64_t> wanted;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Trace first = run({.keep = true, .describe_step = wanted});
    const Trace second = run({.keep = true, .describe_step = wanted});
    const auto step = first_difference(first, second);
    if (!step) break;
    difference.step = *step;
    if (step == wanted)
      return Difference{*step, description_of(first, *step), description_of(second, *step)};
    wanted = step;
  }
  if (!wanted) return std::nullopt;
  difference.first = difference.second =
      "the first difference moved each time the runs were repeated";
  return difference;
}

}  // namespace leeway::sim
