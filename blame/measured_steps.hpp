#pragma once
// MeasuredSteps: the durations of a run's computations, from its events.
#include <cstddef>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::blame {

struct MeasuredSteps {
  /// By worker or stage: seconds per sample of each iteration with samples, in order.
  std::vector<std::vector<double>> per_sample;
  /// Median seconds that a message takes: half of those between two iterations of a worker whose
  /// pulls were not parked, which has a pull, its answer and an update; in pipelines those from a
  /// forward to the forward of the next chunk that waits for it. 0 with host groups.
  double latency = 0;

  /// Of all members with that many workers each.
  std::size_t iterations(std::size_t per_member) const;
};

/// Reads `events.bin` of the folder of a run with that many stages per pipeline. Errors: the file
/// is missing or malformed, or a worker has no iteration.
Expected<MeasuredSteps> read_measured_steps(const std::string& folder, std::size_t stages);

}  // namespace leeway::blame
