#include "runtime/tools/atlas.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/text_table.hpp"
#include "runtime/interrupt.hpp"
#include "sim/search/crash_atlas.hpp"

namespace leeway {
namespace {

using sim::AtlasRun;
using sim::Victim;

constexpr std::uint64_t kMoreRuns = 500;
constexpr int kPasses = 3;

/// The runs in which processes of one kind were lost.
struct Row {
  std::uint64_t runs = 0;
  std::array<std::uint64_t, sim::kDamages> failures{};  // by sim::Damage
  std::vector<Duration> standstills;
};

/// Calls `call` for 0 to count - 1 on all threads, until it is interrupted.
void for_all(std::uint64_t count, unsigned threads, const std::function<bool()>& interrupted,
             const std::function<void(std::uint64_t)>& call) {
  std::atomic<std::uint64_t> next{0};
  std::vector<std::jthread> all;
  for (unsigned i = 0; i < threads; ++i)
    all.emplace_back([&] {
      for (std::uint64_t at = next++; at < count && !interrupted(); at = next++) call(at);
    });
}

class Atlas {
 public:
  explicit Atlas(bool terminal) : terminal_(terminal) {}

  void add(const AtlasRun& run, const std::string& repeat) {
    std::lock_guard lock(mutex_);
    ++done_;
    if (terminal_ && done_ % 16 == 0)
      std::cerr << "\r\x1b[K" << done_ << " runs, " << failures_ << " failed" << std::flush;
    if (!run.was_lost) return;
    Row& row = rows_[static_cast<std::size_t>(run.lost.first)];
    ++row.runs;
    if (run.standstill.ns >= 0) row.standstills.push_back(run.standstill);
    for (const auto& two : run.possible) covered_.try_emplace(two);
    if (run.second_was_lost) {
      ++second_;
      ++covered_[run.lost];
    }
    if (run.trial.property.empty()) return;
    ++row.failures[static_cast<std::size_t>(run.trial.damage)];
    if (failures_++ == 0)
      first_failure_ = concat(run.trial.property, "\n", run.trial.report, "\n  at ", repeat);
  }

  /// The combinations of two losses that were possible in a run, and did not happen.
  std::vector<sim::TwoLosses> not_covered() const {
    std::vector<sim::TwoLosses> missing;
    for (const auto& [losses, count] : covered_)
      if (count == 0) missing.push_back(losses);
    return missing;
  }

  bool print() const {
    if (terminal_) std::cerr << "\r\x1b[K";
    TextTable table;
    table.add({"lost", "runs", "updates lost", "samples lost or repeated", "other failures",
               "time without progress"});
    for (int kind = 0; kind < sim::kVictims; ++kind) {
      Row row = rows_[static_cast<std::size_t>(kind)];
      if (row.runs == 0) continue;
      std::ranges::sort(row.standstills);
      const auto& all = row.standstills;
      const std::string still = all.empty()
                                    ? "-"
                                    : concat("median ", duration(all[all.size() / 2].seconds()),
                                             ", at most ", duration(all.back().seconds()));
      const auto& [updates, samples, other] = row.failures;
      table.add({std::string(sim::name_of(static_cast<Victim>(kind))), grouped(row.runs),
                 grouped(updates), grouped(samples), grouped(other), still});
    }
    std::cout << table.text();
    if (second_ > 0) print_second();
    if (failures_ > 0) std::cout << "\nThe first failure:\n" << first_failure_ << '\n';
    return failures_ == 0;
  }

 private:
  void print_second() const {
    const auto missing = not_covered();
    std::cout << grouped(second_) << " of these runs lost a second process during the recovery, in "
              << covered_.size() - missing.size() << " of " << covered_.size()
              << " possible combinations of first process, second process and its last message.\n";
    for (const auto& [first, second, message] : missing)
      std::cout << "not covered: " << sim::name_of(first) << ", then " << sim::name_of(second)
                << " after " << message << '\n';
  }

  const bool terminal_;
  std::mutex mutex_;
  std::uint64_t done_ = 0, second_ = 0, failures_ = 0;
  std::array<Row, sim::kVictims> rows_;
  std::map<sim::TwoLosses, std::uint64_t> covered_;  // how often; 0: possible, but not drawn
  std::string first_failure_;
};

}  // namespace

int crash_atlas(const Plan& plan, const AtlasOptions& options) {
  const auto atlas = sim::CrashAtlas::make(plan, sim::load_job);
  if (!atlas) {
    std::cerr << plan.name << ": " << atlas.error().text << '\n';
    return kExitRefused;
  }
  const InterruptGuard guard;
  const auto interrupted = [&] { return guard.interrupted(); };
  const unsigned threads =
      std::max(1u, options.threads ? options.threads : std::thread::hardware_concurrency());
  std::cout << plan.name << ": " << grouped(atlas->messages()) << " messages of processes that may "
            << "be lost; each is lost after each of its messages, and starts again.\n";
  Atlas results(isatty(STDERR_FILENO) == 1);
  const auto& points = atlas->points();
  for_all(points.size(), threads, interrupted, [&](std::uint64_t i) {
    results.add(atlas->lose(points[i]),
                concat("message ", points[i].sends, " of ", points[i].actor));
  });
  for_all(options.second, threads, interrupted, [&](std::uint64_t i) {
    results.add(atlas->lose_two(options.seed + i), concat("seed ", options.seed + i));
  });
  // Rare combinations are looked for, each in some more runs, which may show further ones.
  std::uint64_t seed = options.seed + options.second;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto missing = results.not_covered();
    for_all(missing.size(), threads, interrupted, [&](std::uint64_t i) {
      for (std::uint64_t more = 0; more < kMoreRuns && !interrupted(); ++more) {
        const std::uint64_t drawn = seed + i * kMoreRuns + more;
        const AtlasRun run = atlas->lose_two(drawn, missing[i]);
        results.add(
            run, concat("seed ", drawn, " aimed at ", sim::name_of(missing[i].first), " and then ",
                        sim::name_of(missing[i].second), " after ", missing[i].last_message));
        if (run.second_was_lost) return;
      }
    });
    seed += missing.size() * kMoreRuns;
  }
  const bool well = results.print();
  if (!well) return kExitFailed;
  return guard.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace leeway
