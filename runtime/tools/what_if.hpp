#pragma once
// what_if: simulates a run with its own measured durations, as it ran and with other settings.
//
// The computations of the simulation take as long as those of the run did, iteration by iteration;
// the latency of its links is half of the time that the run needed between two iterations without
// waiting. Everything else is the runtime itself. The run may be that of another training system: a
// trace has the times of its computations, and messages of the simulation take none.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

struct WhatIfOptions {
  std::string folder;                             // of a run with --trace; empty: a trace
  std::string import;                             // its CSV file
  std::optional<plan::Consistency> consistency;   // in place of the run's
  std::optional<plan::Balance> balance;           // likewise
  std::optional<std::string> schedule;            // likewise, of pipelines
  std::vector<std::uint32_t> without_stragglers;  // workers that are as fast as the median one
  std::optional<std::uint32_t> workers, shards;
  std::optional<double> link;  // Gbit/s; none: no limit
  bool prefetch = false;       // besides what the run did
  bool gradients = false;      // compute real gradients, and report losses
};

/// Times of a run, measured or simulated. A sample of a trace is a micro-batch; its measured
/// seconds are those of as many steps as are simulated.
struct RunTimes {
  double seconds = 0, samples_per_second = 0;
  double waiting = 0;  // share of all time of all workers
  std::uint64_t parked_pulls = 0;
  std::optional<double> test_loss;
};

struct WhatIf {
  RunTimes measured, as_it_ran, changed;  // the latter two are simulated
  Plan plan;                              // with the changes
  double samples_per_step = 0;            // of a trace; 0: a run
  bool whole_replicas = false;            // each pipeline of a trace is simulated as one worker
};

/// Errors: files of the run are missing, the run cannot be simulated, or the settings are invalid.
Expected<WhatIf> what_if(const WhatIfOptions& options);
/// Several changes of one run, which is read and simulated as it was only once. All have the same
/// folder and `gradients`, or the same trace and policies that drop pushes in all or none.
Expected<std::vector<WhatIf>> what_if(const std::vector<WhatIfOptions>& all);

}  // namespace leeway
