#pragma once
// Adaptive: a staleness bound that moves in a range, by how much the workers wait for each other.
//
// Leeway costs: old weights, more memory under cuts. It pays where workers would otherwise wait, so
// the bound goes up while they do and down while they do not. Source of the idea that a bound is
// found within a range while training runs: Zhao et al., "Dynamic Stale Synchronous Parallel
// Distributed Training for Deep Learning", ICDCS 2019; there the server predicts from the times of
// pushes by how much the fastest worker may run ahead, here the scheduler looks at waits.
#include <cstdint>
#include <span>

#include "policies/consistency/consistency.hpp"

namespace leeway {

/// The range, as the shards see it: they begin with its low end.
class Adaptive final : public Consistency {
 public:
  Adaptive(std::int64_t low, std::int64_t high) : low_(low), high_(high) {}
  std::string_view name() const override { return "adaptive"; }
  std::int64_t bound(Iteration) const override { return low_; }
  std::int64_t largest_bound() const override { return high_; }

 private:
  std::int64_t low_, high_;
};

/// What a worker did in an interval. All 0 or more.
struct WorkerTime {
  std::int64_t iterations = 0;
  std::int64_t waited_us = 0;  // between two computations, for whatever reason
  std::int64_t computed_us = 0;
};

/// Decides where in its range the bound is, interval by interval. Integers alone.
///
/// Every worker waits a while between two computations, for messages and updates, whatever the
/// bound is. The one that waits least an iteration waits for nobody, so what the others wait beyond
/// that is taken to be for each other:
///
///   lost = sum over workers of (waited - iterations * least waited an iteration)
///   share = lost / sum over workers of (waited + computed)
///
/// Above kRaiseAbove percent the bound goes up by one, above kRaiseFastAbove by half of itself and
/// one. Below kLowerBelow percent, for some intervals in a row, it goes down by one. In between it
/// stays. Where lowering is followed by raising before it has been lowered again, the lower bound
/// was too low: the next lowering takes twice as many quiet intervals, up to kMostPatience, until
/// one is not taken back. So a bound that suits the run is left alone, and seldom tried.
///
/// A worker that is slow for ever makes the others wait under any bound. The bound then goes to the
/// high end and stays there: what helps is to give that worker fewer samples, see balance.
class AdaptiveBound {
 public:
  static constexpr std::int64_t kRaiseAbove = 10, kRaiseFastAbove = 25, kLowerBelow = 3;
  static constexpr std::int64_t kLeastPatience = 2, kMostPatience = 64;

  /// Requires low <= high. The bound begins at `low`.
  AdaptiveBound(std::int64_t low, std::int64_t high) : low_(low), high_(high), bound_(low) {}

  std::int64_t bound() const { return bound_; }
  /// Takes in an interval and returns the bound from now on. Workers without iterations have no
  /// say.
  std::int64_t next(std::span<const WorkerTime> workers);

 private:
  void raise(std::int64_t by);
  void lower();

  std::int64_t low_, high_, bound_;
  std::int64_t patience_ = kLeastPatience;
  std::int64_t quiet_ = 0;  // intervals in a row
  bool on_trial_ = false;   // lowered, and neither raised nor lowered since
};

/// Percent of the workers' time that went into waiting for each other, 0 to 100.
std::int64_t percent_lost(std::span<const WorkerTime> workers);

}  // namespace leeway
