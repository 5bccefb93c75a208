#pragma once
// Stages: the members of a run, the chunks of the model that each worker trains, and its blocks on
// each shard.
//
// A member is a pipeline, a host group or a single worker. It has `count()` workers: workers 0 to
// count() - 1 are the stages of the first pipeline or the workers of the first group, and so on.
// Without stages each worker trains the whole model. The first worker of a member is its lead: it
// leases the samples, and identifies the member to the scheduler. In a host group, only the lead
// pulls and pushes: it has all blocks, and the other workers have none.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/layout.hpp"
#include "plan/plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/pipeline/partition.hpp"

namespace leeway {

/// The chunks that a stage trains, and its blocks.
struct StageShare {
  /// The stage's blocks on one shard.
  struct AtShard {
    /// The buckets that the stage pushes to the shard in each iteration, in the order in which
    /// backward completes them; `index` counts from 0. The layer of a bucket with borrowed
    /// parameters is the layer that borrows them.
    std::vector<Bucket> buckets;
    std::vector<std::uint32_t> shard_buckets;  // per bucket: its index in Layout::buckets(shard)
    std::vector<BlockId> blocks;               // in id order
  };
  std::vector<ModelChunk> chunks;  // in the order of the schedule's chunks
  bool recompute = false;
  std::vector<AtShard> at;      // by shard
  std::vector<ShardId> shards;  // those with blocks of the stage, in order

  /// Calls visit(BlockId) for the blocks of a layer.
  template <class Visit>
  void for_each_block(int layer, Visit&& visit) const {
    for (const AtShard& shard : at)
      for (const Bucket& bucket : shard.buckets)
        if (bucket.layer == layer)
          for (const BlockId block : bucket.blocks) visit(block);
  }
};

class Stages {
 public:
  /// `chunks`: all model chunks, in the order of pipeline::Table.
  Stages(const Plan& plan, const Model& model, const Layout& layout, pipeline::Spec spec,
         std::vector<ModelChunk> chunks);

  std::uint32_t count() const { return static_cast<std::uint32_t>(shares_.size()); }
  std::uint32_t pipelines() const { return pipelines_; }
  /// False if each worker trains the whole model.
  bool piped() const { return spec_.stages > 1; }
  /// Whether the workers of a member sum their gradients before the lead pushes them.
  bool grouped() const { return has_several() && !piped(); }
  /// Whether a member has several workers.
  bool has_several() const { return count() > 1; }

  std::uint32_t stage_of(WorkerId worker) const { return worker.value() % count(); }
  WorkerId lead_of(WorkerId worker) const { return WorkerId(worker.value() - stage_of(worker)); }
  std::uint32_t pipeline_of(WorkerId worker) const { return worker.value() / count(); }
  WorkerId lead_of_pipeline(std::uint32_t pipeline) const { return WorkerId(pipeline * count()); }
  WorkerId worker(WorkerId lead, std::uint32_t stage) const {
    return WorkerId(lead.value() + stage);
  }

  /// The workers of the same member that exchange messages with this one. In a pipeline: the
  /// previous and the next stage; with several chunks in round robin also the first and the last
  /// with each other. In a group: the lead with each other worker.
  std::vector<WorkerId> neighbours(WorkerId worker) const;

  /// For messages: "worker 5", or "pipeline 1 stage 2 (worker 6)".
  std::string name_of(WorkerId worker) const;
  /// The member with this lead: "worker 5", "pipeline 1 (workers 4 to 7)" or "group 1 (workers 4 to
  /// 7)".
  std::string name_of_member(WorkerId lead) const;
  /// Why the worker's member has ended: the reason, or "worker 6 (stage 2): the reason".
  std::string end_of(WorkerId worker, const std::string& reason) const;

  const StageShare& share(std::uint32_t stage) const { return shares_[stage]; }
  const StageShare& share_of(WorkerId worker) const { return shares_[stage_of(worker)]; }
  /// The chunks and blocks whose gradients the worker computes. In a group, those of its lead.
  const StageShare& computed_by(WorkerId worker) const {
    return grouped() ? shares_.front() : share_of(worker);
  }
  /// The stages that push a bucket of Layout::buckets(shard): two for tied weights that one stage
  /// borrows from another.
  const std::vector<std::uint32_t>& owners(ShardId shard, std::uint32_t bucket) const {
    return owners_[shard.value()][bucket];
  }

  const pipeline::Spec& spec() const { return spec_; }
  const std::vector<ModelChunk>& chunks() const { return chunks_; }
  const pipeline::Placement& placement() const { return placement_; }
  /// The stage with the model's last chunk: it knows the losses, and reports the samples.
  std::uint32_t loss_stage() const {
    return static_cast<std::uint32_t>(placement_.stage_of(static_cast<int>(chunks_.size()) - 1));
  }
  /// Whether the worker's samples count for its member. All stages of a pipeline report the same
  /// samples: those of the loss stage count. The workers of a group report their own.
  bool counts_samples(WorkerId worker) const {
    return grouped() || stage_of(worker) == loss_stage();
  }
  /// Whether the worker's iterations count for its member.
  bool counts_iterations(WorkerId worker) const { return stage_of(worker) == loss_stage(); }
  /// Updates follow each other without a flush of the pipeline.
  bool asynchronous() const { return asynchronous_; }
  /// The most updates between the weights that a gradient is computed on and those that it is
  /// applied to. The staleness bound must allow this lag.
  std::int64_t version_lag() const {
    return version_lags_.empty() ? 0 : std::ranges::max(version_lags_);
  }
  /// The updates between a stage's pull and the update with its gradient.
  std::int64_t version_lag(std::uint32_t stage) const {
    return version_lags_.empty() ? 0 : version_lags_[stage];
  }
  /// Most versions of its weights that a stage keeps at once.
  int weight_versions() const { return weight_versions_; }

 private:
  pipeline::Spec spec_;
  pipeline::Placement placement_;
  std::vector<ModelChunk> chunks_;
  std::uint32_t pipelines_ = 1;
  bool asynchronous_ = false;
  std::vector<std::int64_t> version_lags_;  // by stage; empty without pipelines
  int weight_versions_ = 1;
  std::vector<StageShare> shares_;
  std::vector<std::vector<std::vector<std::uint32_t>>> owners_;  // by shard, by bucket
};

/// The plan's schedule, by its present name.
pipeline::Spec pipeline_spec(const Plan& plan);

/// Splits the model by the plan's split, or with the best pace, from costs that are estimated from
/// the layers' shapes. An error names the setting and the nearest valid value. A staleness bound
/// below the schedule's version lag is an error.
Expected<std::shared_ptr<const Stages>> make_stages(const Plan& plan, const Model& model,
                                                    const Layout& layout,
                                                    const Consistency& consistency);

}  // namespace leeway
