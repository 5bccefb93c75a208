#pragma once
// Helpers for tests of tied weights: a table that two stages of a pipeline share.
#include "tests/actors/shard_scene.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::test {

/// A transformer whose last stage borrows the table of the first.
inline Plan tied_plan(std::uint32_t stages, std::uint32_t pipelines = 1) {
  Plan plan = text_plan();
  plan.workers = stages * pipelines;
  plan.pipeline.stages = stages;
  plan.shards = 1;
  plan.consistency = plan::Ssp{1};
  plan.optimizer = {0.05, 0, plan::Sgd{}};
  return plan;
}

inline const WorkerId kFirst(0), kLast(1);  // the stages of a pipeline of two

/// The bucket of a stage with the tied block.
inline std::uint32_t tied_bucket(const ShardScene& scene, WorkerId worker) {
  const auto& buckets = scene.share_of(worker).shard_buckets;
  for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket)
    if (scene.job().stages->owners(ShardId(0), buckets[bucket]).size() > 1) return bucket;
  LW_CHECK(false, "no bucket is tied");
}

/// Pushes all other buckets of a stage.
inline void push_others(ShardScene& scene, WorkerId worker, std::int64_t iteration) {
  for (std::uint32_t bucket = 0; bucket < scene.share_of(worker).buckets.size(); ++bucket)
    if (bucket != tied_bucket(scene, worker)) scene.push(worker, iteration, bucket);
}

/// The number of updates of a block.
inline Version version_of(const msg::SnapshotState& state, BlockId id) {
  for (const auto& block : state.blocks)
    if (block.block == id) return block.version;
  LW_CHECK(false, id);
}

}  // namespace leeway::test
