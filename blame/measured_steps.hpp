#pragma once
// MeasuredSteps: the durations of a run's computations, from its events.
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::blame {

struct MeasuredSteps {
  /// By worker: seconds per sample of each iteration with samples, in order.
  std::vector<std::vector<double>> per_sample;
  /// Median seconds between two iterations of a worker whose pulls were not parked: pull, answer
  /// and update.
  double turnaround = 0;

  std::size_t count() const;
  double least_per_sample() const;
};

/// Reads `events.bin` of a run folder. Errors: the file is missing or malformed, a worker has no
/// iteration, or the run has pipelines.
Expected<MeasuredSteps> read_measured_steps(const std::string& folder);

}  // namespace leeway::blame
