#pragma once
// RunWaits: the causes of the waiting times of a run's workers, from the files of its folder.
//
// Each second that a worker waited is attributed once, so the causes sum to the measured waiting
// time. With `events.bin` (--trace), each wait is divided at the moments of the last pull that
// was answered: until it was parked, until it was released, and until the computation began.
// Without it, a worker's waiting time is divided by the parked times in `result.json`, which are
// those of the shard that parked it for the longest time. That of a stage is divided by its
// neighbours.
#include <string>
#include <vector>

#include "blame/wait_follower.hpp"
#include "core/expected.hpp"

namespace leeway::blame {

struct RunWaits {
  struct Row {
    std::size_t worker = 0;
    Cause cause;
    double seconds = 0;
  };
  std::string name;  // of the plan
  std::size_t workers = 0;
  double compute = 0;  // seconds of all workers, as measured
  double wait = 0;     // the same
  bool from_events = false;
  bool has_stages = false;
  std::vector<Row> rows;  // longest first

  /// The seconds of all workers together, longest first.
  std::vector<std::pair<Cause, double>> by_cause() const;
  double attributed() const;
  /// Of all time of all workers.
  double share(double seconds) const { return seconds / (compute + wait); }
};

/// Error: a file is missing or malformed.
Expected<RunWaits> read_run_waits(const std::string& folder);

}  // namespace leeway::blame
