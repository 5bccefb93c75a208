#pragma once
// Faults: brings the faults of a plan upon a simulation, each at its time or iteration.
#include <map>
#include <memory>
#include <vector>

#include "sim/faults/catalogue.hpp"

namespace leeway::sim {

/// How a host gets the role of an actor's life, counted from 1.
using MakeRole = std::function<std::shared_ptr<Role>(Address, std::uint32_t life)>;

/// Is one of the simulator's observers, so that it sees iterations begin.
class Faults final : public Observer {
 public:
  Faults(std::vector<plan::Fault> faults, MakeRole make_role);

  /// True when it has to see what happens.
  bool wait_for_iterations() const;
  /// After the actors have been added, before they start. The simulator lives as long as this.
  void arm(Simulator& host);
  /// Begins the next life of an actor that has ended.
  void start_again(Address actor);

  void on_event(Instant at, Address actor, const Event& event) override;

 private:
  struct Waiting {
    plan::Fault spec;
    std::unique_ptr<Fault> fault;
    bool begun = false;
  };
  void begin(Waiting& waiting);

  Simulator* host_ = nullptr;
  MakeRole make_role_;
  std::vector<Waiting> faults_;
  /// The last one, of those that join later or were started again.
  std::map<Address, std::uint32_t> lives_;
};

}  // namespace leeway::sim
