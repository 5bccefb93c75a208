#pragma once
// WorkerLaunches: on which process of a simulated cluster each worker was last launched. Checks
// that each launch happens once, on one node, and after all earlier ones.
#include <map>
#include <memory>

#include "sim/cluster/process_network.hpp"
#include "sim/observers.hpp"

namespace leeway::sim {

class WorkerLaunches {
 public:
  explicit WorkerLaunches(std::shared_ptr<Observers> observers)
      : observers_(std::move(observers)) {}

  /// A worker takes part from the start of the job.
  void start(WorkerId worker, ProcessId process) { launches_[worker] = {process, 1, true, {}}; }
  /// It is about to be launched there. Throws a Violation.
  void begin(WorkerId worker, std::uint32_t launch, ProcessId process, Instant now);
  /// Time of the latest launch of a worker; the begin of the job for the first.
  Instant begun_at(WorkerId worker) const { return launches_.at(worker).begun; }
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
  std::map<WorkerId, Launch> launches_;
  bool closed_ = false;
};

}  // namespace leeway::sim
