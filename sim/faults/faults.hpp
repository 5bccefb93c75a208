#pragma once
// Faults: injects the faults of a plan into a simulation, each at its time or iteration.
#include <map>
#include <memory>
#include <vector>

#include "sim/faults/catalogue.hpp"

namespace leeway::sim {

/// Makes the role of an actor. `launch` counts its starts, from 1.
using MakeRole = std::function<std::shared_ptr<Role>(Address, std::uint32_t launch)>;

/// An observer of the simulator, so that faults can begin at iterations.
class Faults final : public Observer {
 public:
  /// `disturbances` counts the faults that have begun; may be null.
  Faults(const std::vector<plan::Fault>& faults, std::shared_ptr<Disturbances> disturbances,
         MakeRole make_role);

  /// Whether some fault begins at an iteration. Otherwise it need not observe.
  bool wait_for_iterations() const;
  /// Call after add() and before start(). The two use each other until the run ends.
  void arm(Simulator& host);
  /// Restarts an actor that has ended; a replica of a shard restarts as its standby.
  void start_again(Address actor);

  void on_event(Instant at, Address actor, const Event& event) override;

 private:
  struct Waiting {
    std::size_t number = 0;  // in the plan
    plan::Fault spec;
    std::unique_ptr<Fault> fault;
    bool begun = false;
  };
  void begin(Waiting& waiting);
  /// Whether the actor is a shard with a standby, or a standby.
  bool has_standby(Address actor) const;

  Simulator* host_ = nullptr;
  std::shared_ptr<Disturbances> disturbances_;
  MakeRole make_role_;
  std::vector<Waiting> faults_;
  /// The latest launch of actors that join late or were restarted.
  std::map<Address, std::uint32_t> launches_;
};

}  // namespace leeway::sim
