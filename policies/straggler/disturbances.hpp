#pragma once
// Disturbances: counts what the stragglers and faults of a plan have done in a run, so that a run
// in which one had no effect can be reported.
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/time.hpp"

namespace leeway {

/// Thread-safe. Stragglers and faults have the numbers of their places in the plan.
class Disturbances {
 public:
  struct Straggler {
    Duration added;                // to the computations of all workers that it slows
    std::uint64_t iterations = 0;  // that it slowed
  };

  Disturbances(std::size_t stragglers, std::size_t faults)
      : stragglers_(stragglers), faults_(faults) {}

  void slowed(std::size_t straggler, Duration added) {
    std::lock_guard lock(mutex_);
    stragglers_.at(straggler).added += added;
  }
  /// Call once per iteration that the straggler slows.
  void slowed_iteration(std::size_t straggler, std::uint64_t iterations = 1) {
    std::lock_guard lock(mutex_);
    stragglers_.at(straggler).iterations += iterations;
  }
  void fired(std::size_t fault) {
    std::lock_guard lock(mutex_);
    faults_.at(fault) = true;
  }

  std::vector<Straggler> stragglers() const {
    std::lock_guard lock(mutex_);
    return stragglers_;
  }
  /// By fault: whether it has begun, at an actor that it could disturb.
  std::vector<bool> faults() const {
    std::lock_guard lock(mutex_);
    return faults_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Straggler> stragglers_;
  std::vector<bool> faults_;
};

}  // namespace leeway
