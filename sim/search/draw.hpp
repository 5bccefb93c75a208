#pragma once
// draw_plan: a random run for a search, determined by a seed.
#include <cstdint>

#include "actors/job.hpp"

namespace leeway::sim {

/// Whether a search draws pipelines for a scenario without stages.
inline constexpr bool kDrawPipelines = true;

struct DrawLimits {
  std::uint32_t least_workers = 4, most_workers = 16;
  std::uint32_t most_shards = 4;
  /// Approximate number of iterations of all workers.
  std::uint64_t iterations = 600;
  /// Whether one plan in three has pipelines; all have them if `base` does.
  bool pipelines = kDrawPipelines;
  /// One plan in this many runs on a simulated cluster of node agents; 0: none.
  std::uint64_t cluster_one_in = 4;
};

/// Keeps data, model, loss and optimizer of `base`. Draws the numbers of actors, the consistency,
/// batches and leases, the stop conditions, stragglers, the network and at least one fault, often
/// overlapping ones. No drawn fault ends a correct run: shards and scheduler are silent for less
/// than the detection time, worker 0 stays, and lost stages of the first pipeline come back.
/// Synthetic data is reduced, so that epochs end within the run.
Plan draw_plan(const Job& base, std::uint64_t seed, const DrawLimits& limits = {});

}  // namespace leeway::sim
