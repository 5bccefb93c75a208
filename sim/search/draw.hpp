#pragma once
// What a search tries: runs drawn from a seed.
#include <cstdint>

#include "actors/job.hpp"

namespace leeway::sim {

/// Whether a search draws pipelines where it is not asked to.
inline constexpr bool kDrawPipelines = true;

struct DrawLimits {
  std::uint32_t least_workers = 4, most_workers = 16;
  std::uint32_t most_shards = 4;
  /// About so many iterations of all workers together.
  std::uint64_t iterations = 600;
  /// Whether one plan in three has pipelines (all of them have, where `base` has).
  bool pipelines = kDrawPipelines;
};

/// A plan with the data, model, loss and optimizer of `base`; drawn from the seed are the numbers
/// of actors, who waits for whom, batches and leases, when it ends, stragglers, the network, and
/// one fault at least; often several that meet. No drawn fault ends a run that works as it should:
/// shards and scheduler are away for less time than anybody is taken for dead after, and worker 0
/// stays; of the first pipeline stages may be lost, but come back. Made data is made smaller, so
/// that epochs end within the run.
Plan draw_plan(const Job& base, std::uint64_t seed, const DrawLimits& limits = {});

}  // namespace leeway::sim
