#pragma once
// WorkerLives: which process of a simulated cluster has the present life of each worker. Checks
// that a life begins once, on one node, and after all earlier ones.
#include <map>
#include <memory>

#include "sim/cluster/process_network.hpp"
#include "sim/observers.hpp"

namespace leeway::sim {

class WorkerLives {
 public:
  explicit WorkerLives(std::shared_ptr<Observers> observers) : observers_(std::move(observers)) {}

  /// A worker takes part from the start of the job.
  void start(WorkerId worker, ProcessId process) { lives_[worker] = {process, 1, true, {}}; }
  /// Its next life is about to begin there. Throws a Violation.
  void begin(WorkerId worker, std::uint32_t life, ProcessId process, Instant now);
  /// When the latest life of a worker began; the begin of the job for the first.
  Instant begun_at(WorkerId worker) const { return lives_.at(worker).begun; }
  /// Observers see nothing more.
  void close() { closed_ = true; }
  /// The part of one process; see Presence.
  std::shared_ptr<Presence> at(ProcessId process);

 private:
  class Here;
  struct Life {
    ProcessId process = 0;
    std::uint32_t number = 0;
    bool lives = false;
    Instant begun;
  };

  std::shared_ptr<Observers> observers_;
  std::map<WorkerId, Life> lives_;
  bool closed_ = false;
};

}  // namespace leeway::sim
