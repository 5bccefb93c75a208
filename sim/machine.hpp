#pragma once
// The processors of simulated nodes: free cores, and the duration of computations.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/outbox.hpp"
#include "core/fifo.hpp"
#include "core/rng.hpp"
#include "policies/straggler/straggler.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"

namespace leeway::sim {

/// The cores of one node, and the queue of tasks that wait for one.
class Cores {
 public:
  explicit Cores(std::uint32_t count) : free_(count) {}
  /// Takes a free core and returns true. Without a free core, `task` waits.
  bool take(std::uint32_t task) {
    if (free_ == 0) {
      waiting_.push_back(task);
      return false;
    }
    --free_;
    return true;
  }
  /// Releases a core. Returns the waiting task that takes it, if any.
  std::optional<std::uint32_t> give_back() {
    if (waiting_.empty()) {
      ++free_;
      return std::nullopt;
    }
    const std::uint32_t next = waiting_.front();
    waiting_.pop_front();
    return next;
  }

 private:
  std::uint32_t free_;
  Fifo<std::uint32_t> waiting_;
};

/// The durations of parts of work.
class ComputeModel {
 public:
  /// `first`: the first iteration of each worker; empty: 0.
  /// `disturbances` counts what the stragglers do; may be null.
  ComputeModel(const World& world, const std::vector<plan::Straggler>& stragglers,
               std::vector<Iteration> first, std::uint64_t seed,
               std::shared_ptr<Disturbances> disturbances);

  /// The straggler delay of an actor's work that begins now. Call once for each work.
  Slowdown slow_down(Address actor, const Work& work, Instant now);
  /// Counts a part of the actor's latest work, which its factor has made `longer`. `first`: the
  /// first part, with the pauses.
  void count_delay(Address actor, Duration longer, bool first) const;
  /// The duration of a part on an otherwise idle core.
  Duration time(const Cost& cost);

 private:
  const World world_;
  Rng rng_;
  std::vector<plan::Straggler> specs_;
  std::vector<Iteration> first_;
  std::uint64_t seed_;
  std::shared_ptr<Disturbances> disturbances_;
  std::map<std::uint32_t, StragglerModel> stragglers_;  // by worker, created at its first work
};

}  // namespace leeway::sim
