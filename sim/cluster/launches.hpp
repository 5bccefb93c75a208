#pragma once
// Launches: on which process of a simulated cluster each worker, shard and standby was last
// launched. Checks that each launch happens once, on one node.
#include <map>
#include <memory>

#include "sim/cluster/process_network.hpp"
#include "sim/observers.hpp"

namespace leeway::sim {

class Launches {
 public:
  explicit Launches(std::shared_ptr<Observers> observers) : observers_(std::move(observers)) {}

  /// An actor takes part from the start of the job.
  void start(Address actor, ProcessId process) { launches_[actor] = {process, 1, true, {}}; }
  /// An actor is about to be launched there. Throws a Violation.
  void begin(Address actor, std::uint32_t launch, ProcessId process, Instant now);
  /// Time of the latest launch of an actor; the begin of the job for the first.
  Instant begun_at(Address actor) const { return launches_.at(actor).begun; }
  /// Observers see nothing more.
  void close() { closed_ = true; }
  /// The part of one process; see Presence.
  std::shared_ptr<Presence> at(ProcessId process);

 private:
  class Here;
  struct Launch {
    ProcessId process = 0;
    std::uint32_t number = 0;
    bool lives = false;
    Instant begun;
  };

  std::shared_ptr<Observers> observers_;
  std::map<Address, Launch> launches_;
  std::map<Address, std::uint64_t> records_;  // number of the last record of each replicated role
  bool closed_ = false;
};

}  // namespace leeway::sim
