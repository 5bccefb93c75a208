#pragma once
// Adaptive: a staleness bound that moves within a range, by how long workers wait for each other.
//
// A larger bound means older weights and more memory during snapshots. It pays only while workers
// would wait. So the bound rises while they wait and falls while they do not. Zhao et al., "Dynamic
// Stale Synchronous Parallel Distributed Training for Deep Learning", ICDCS 2019, also find the
// bound within a range while training runs. Their server predicts from the times of pushes how far
// the fastest worker may run ahead; here the scheduler measures waits.
#include <cstdint>
#include <span>

#include "policies/consistency/consistency.hpp"

namespace leeway {

/// The range. Shards start with its low end.
class Adaptive final : public Consistency {
 public:
  Adaptive(std::int64_t low, std::int64_t high) : low_(low), high_(high) {}
  std::string_view name() const override { return "adaptive"; }
  std::int64_t bound() const override { return low_; }
  std::int64_t largest_bound() const override { return high_; }

 private:
  std::int64_t low_, high_;
};

/// A worker's report of one interval. All numbers are 0 or more.
struct WorkerTime {
  std::int64_t iterations = 0;
  std::int64_t waited_us = 0;  // between two computations, for any reason
  std::int64_t computed_us = 0;
};

/// Moves the bound within its range after each interval, with integers only.
///
/// Under any bound, every worker waits for messages and updates between two computations. The
/// worker with the shortest wait per iteration is assumed to wait for nothing else. The excess of
/// longer waits is lost time:
///
///   lost = sum over workers of (waited - iterations * least wait per iteration)
///   share = lost / sum over workers of (waited + computed)
///
/// - share > kRaiseFastAbove percent: the bound rises by half of itself and one;
/// - share > kRaiseAbove percent: it rises by one;
/// - share < kLowerBelow percent for some intervals in a row: it falls by one.
///
/// If the bound rises again after falls, it was too low. Each later fall then takes twice as many
/// quiet intervals, for the rest of the run. So the bound does not oscillate, whatever the workers
/// report: k turns from falling to rising took 2 + 4 + ... + 2^k quiet intervals, so in n intervals
/// there are at most log2(n + 2) - 1.
///
/// A worker that is always slow makes the others wait under any bound. The bound then stays at the
/// high end; such a worker needs fewer samples (policies/balance).
class AdaptiveBound {
 public:
  static constexpr std::int64_t kRaiseAbove = 10, kRaiseFastAbove = 25, kLowerBelow = 3;
  static constexpr std::int64_t kLeastPatience = 2;
  static constexpr std::int64_t kMostPatience = std::int64_t{1} << 40;  // no run has more intervals

  /// Requires low <= first <= high. The bound starts at `first`.
  AdaptiveBound(std::int64_t low, std::int64_t high, std::int64_t first)
      : low_(low), high_(high), state_{.bound = first} {}

  std::int64_t bound() const { return state_.bound; }
  /// Returns the bound after an interval. Ignores workers without iterations.
  std::int64_t next(std::span<const WorkerTime> workers);

  struct State {
    std::int64_t bound = 0;
    std::int64_t patience = kLeastPatience;
    std::int64_t quiet = 0;  // intervals in a row
    bool on_trial = false;   // the last move was a fall
  };
  const State& state() const { return state_; }
  /// Continues from a state; its bound is moved into the range.
  void resume(const State& state);

 private:
  void raise(std::int64_t by);
  void lower();

  std::int64_t low_, high_;
  State state_;
};

/// The percentage of the workers' time that was lost, 0 to 100.
std::int64_t percent_lost(std::span<const WorkerTime> workers);

}  // namespace leeway
