#pragma once
// TracedJob: the measured durations of a training job of another system, step by step.
#include <leeway/blame/operation_trace.hpp>
#include <leeway/blame/slowdown.hpp>
#include <leeway/leeway.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leeway::study {

/// Seconds of a worker's iterations.
using Durations = std::vector<double>;

struct TracedJob {
  std::string name;  // of the file
  std::uint32_t replicas = 0, stages = 0, micro_batches = 0;
  std::size_t operations = 0;
  blame::Slowdown slowdown;
  std::string explanation;  // of the slowdown
  /// The computing time of each stage of each replica, and the time of each replica that waits for
  /// no other. The first replica's stages come first.
  std::vector<Durations> of_stages, of_replicas;
};

/// Errors: the file cannot be read or replayed, or its pipelines differ in their micro-batches.
Expected<TracedJob> read_job(const std::string& path);

/// Lets the workers of a simulated plan take these seconds for their iterations, again and again,
/// and all messages and updates next to no time. Requires one list for each worker.
Status replay(Plan& plan, const std::vector<Durations>& seconds);

}  // namespace leeway::study
