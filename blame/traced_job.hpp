#pragma once
// TracedJob: the measured durations of a training job of another system, step by step.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "blame/operation_trace.hpp"
#include "blame/slowdown.hpp"

namespace leeway::blame {

/// Seconds of a worker's iterations.
using Durations = std::vector<double>;

struct TracedJob {
  std::string name;  // of the file
  std::uint32_t replicas = 0, stages = 0, micro_batches = 0;
  std::size_t operations = 0;
  Slowdown slowdown;
  std::string explanation;  // of the slowdown
  /// The computing time of each stage of each replica, and the time of each replica that waits for
  /// no other. The first replica's stages come first.
  std::vector<Durations> of_stages, of_replicas;
};

/// Errors: the file cannot be read or replayed, or its pipelines differ in their micro-batches.
/// `advice`: as in read_operations().
Expected<TracedJob> read_traced_job(const std::string& path, std::string_view advice);

}  // namespace leeway::blame
