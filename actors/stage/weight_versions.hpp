#pragma once
// WeightVersions: the weight versions that a stage holds, each from its pull until no operation
// reads it.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/worker/compute_engine.hpp"
#include "actors/worker/parameter_client.hpp"

namespace leeway {

class WeightVersions {
 public:
  /// Keeps a reference to `parameters`.
  WeightVersions(std::shared_ptr<const Job> job, ParameterClient& parameters)
      : job_(std::move(job)), parameters_(parameters) {}

  /// Pulls a version, unless it is held. `pulled` names the pull, `own_clock` counts the stage's
  /// iterations before this version.
  void pull(std::int64_t version, Iteration pulled, Clock own_clock, Outbox& out);
  /// The weights; null until they have arrived. The stage is blocked between a call that returns
  /// null and the next one that does not.
  std::shared_ptr<DeviceWeights> find(std::int64_t version, Instant now);
  /// The pull that brings a version. Requires that the version is held.
  Iteration pulled(std::int64_t version) const { return held_.at(version).pulled; }
  /// The largest held version; empty without any.
  std::optional<std::int64_t> newest() const;

  /// Drops versions below `version`, which no operation reads any more. Also drops pulls without an
  /// answer: a short last iteration has fewer micro-batches than its schedule, and may read no
  /// weights.
  void forget_below(std::int64_t version);
  /// Drops all versions, and resets the time blocked.
  void clear();
  /// Drops all weights, which `engine` keeps as long as a work can read them.
  void hand_over(ComputeEngine& engine);

  /// Time blocked since the last call.
  Duration take_blocked() { return std::exchange(blocked_, {}); }
  /// Calls visit(weights) for each version that has arrived.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [version, held] : held_)
      if (held.weights) visit(held.weights);
  }

 private:
  struct Held {
    Iteration pulled;
    std::shared_ptr<DeviceWeights> weights;  // null until they have arrived
  };
  void forget_until(std::map<std::int64_t, Held>::iterator end);

  std::shared_ptr<const Job> job_;
  ParameterClient& parameters_;
  std::map<std::int64_t, Held> held_;
  std::optional<Instant> blocked_since_;
  Duration blocked_;
};

}  // namespace leeway
