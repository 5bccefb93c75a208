#pragma once
// What tests of a table that two stages share have in common.
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

inline const WorkerId kFirst(0), kLast(1);  // of two stages

/// Of the parts of a stage, the one that it shares with another.
inline std::uint32_t shared_part(const ShardScene& scene, WorkerId worker) {
  const auto& groups = scene.share_of(worker).groups;
  for (std::uint32_t part = 0; part < groups.size(); ++part)
    if (scene.job().stages->owners(ShardId(0), groups[part]).size() > 1) return part;
  LW_CHECK(false, "no part is shared");
}

/// Pushes all parts of a stage but that one.
inline void push_others(ShardScene& scene, WorkerId worker, std::int64_t iteration) {
  for (std::uint32_t part = 0; part < scene.share_of(worker).parts.size(); ++part)
    if (part != shared_part(scene, worker)) scene.push(worker, iteration, part);
}

/// How many updates a block has had.
inline Version version_of(const msg::SnapshotState& state, BlockId id) {
  for (const auto& block : state.blocks)
    if (block.block == id) return block.version;
  LW_CHECK(false, id);
}

}  // namespace leeway::test
