#pragma once
// Machine: the nodes of a simulated run, and how long a computation takes on them.
#include <map>
#include <optional>
#include <vector>

#include "actors/outbox.hpp"
#include "core/fifo.hpp"
#include "core/rng.hpp"
#include "policies/straggler/straggler.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"

namespace leeway::sim {

/// Cores of one node: who has one, and who waits for one, in order of asking.
class Cores {
 public:
  explicit Cores(std::uint32_t count) : free_(count) {}
  /// True if a core was free and is taken; otherwise `task` waits.
  bool take(std::uint32_t task) {
    if (free_ == 0) {
      waiting_.push_back(task);
      return false;
    }
    --free_;
    return true;
  }
  /// Gives a core back; returns the task that has it now, if one waited.
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

/// How long parts of work take, per actor.
class ComputeModel {
 public:
  ComputeModel(const World& world, const std::vector<plan::Straggler>& stragglers,
               std::uint64_t seed);

  /// The slow-down of an actor's next work, which begins now. Call once for each work.
  Slowdown slow_down(Address actor, const Work& work, Instant now);
  /// What a part takes on a core that does nothing else.
  Duration time(const Cost& cost);

 private:
  const World world_;
  Rng rng_;
  std::vector<plan::Straggler> specs_;
  std::uint64_t seed_;
  std::map<std::uint32_t, StragglerModel> stragglers_;  // by worker; those that have computed
};

}  // namespace leeway::sim
