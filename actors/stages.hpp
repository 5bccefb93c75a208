#pragma once
// Stages: which part of the model each worker trains, and which blocks it shares with shards.
//
// Workers come in pipelines of `count()` stages: workers 0 to count() - 1 are the stages of the
// first pipeline, and so on. With one stage every worker trains the whole model. The first worker
// of a pipeline is its lead: it leases the samples, and the scheduler knows the pipeline by it.
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

/// What the workers that are this stage of their pipelines train.
struct StageShare {
  /// Of the blocks, those on one shard.
  struct AtShard {
    /// What the shard is owed for an iteration, in the order in which backward finishes it; `index`
    /// counts from 0. The layer of a borrowed parameter's blocks is the one that borrows it.
    std::vector<Bucket> parts;
    std::vector<std::uint32_t> groups;  // of each part, its index in Layout::buckets(shard)
    std::vector<BlockId> blocks;        // in id order
  };
  std::vector<ModelChunk> chunks;  // parts of the model, in the order of the schedule's chunks
  bool recompute = false;
  std::vector<AtShard> at;      // by shard
  std::vector<ShardId> shards;  // those with blocks of it, in order
};

class Stages {
 public:
  /// `parts`: of the model, stages * chunks of them (see pipeline::Table).
  Stages(const Plan& plan, const Model& model, const Layout& layout, pipeline::Spec spec,
         std::vector<ModelChunk> parts);

  std::uint32_t count() const { return static_cast<std::uint32_t>(shares_.size()); }
  std::uint32_t pipelines() const { return pipelines_; }
  /// False when every worker trains the whole model.
  bool piped() const { return count() > 1; }

  std::uint32_t stage_of(WorkerId worker) const { return worker.value() % count(); }
  WorkerId lead_of(WorkerId worker) const { return WorkerId(worker.value() - stage_of(worker)); }
  WorkerId worker(WorkerId lead, std::uint32_t stage) const {
    return WorkerId(lead.value() + stage);
  }

  /// The stages of the same pipeline that a stage sends to and hears from: one before and one
  /// behind, and with several chunks the first and the last each other.
  std::vector<WorkerId> neighbours(WorkerId worker) const;

  /// For people: "worker 5", or "pipeline 1 stage 2 (worker 6)".
  std::string name_of(WorkerId worker) const;
  /// Whom the scheduler knows by its lead: "worker 5", or "pipeline 1 (workers 4 to 7)".
  std::string name_of_member(WorkerId lead) const;

  const StageShare& share(std::uint32_t stage) const { return shares_[stage]; }
  const StageShare& share_of(WorkerId worker) const { return shares_[stage_of(worker)]; }
  /// Of a shard's part (see Layout::buckets), the stages that push to it: two for a parameter that
  /// the last stage borrows from the first.
  const std::vector<std::uint32_t>& owners(ShardId shard, std::uint32_t group) const {
    return owners_[shard.value()][group];
  }

  const pipeline::Spec& spec() const { return spec_; }
  const std::vector<ModelChunk>& chunks() const { return chunks_; }
  /// Updates follow each other without the pipeline being emptied in between.
  bool asynchronous() const { return asynchronous_; }
  /// Updates between the weights that a gradient is computed on and those that it is applied to, at
  /// most: what a staleness bound has to leave room for.
  std::int64_t version_lag() const { return version_lag_; }
  /// Versions of its weights that a stage keeps at once, at most.
  int weight_versions() const { return weight_versions_; }

 private:
  pipeline::Spec spec_;
  std::vector<ModelChunk> chunks_;
  std::uint32_t pipelines_ = 1;
  bool asynchronous_ = false;
  std::int64_t version_lag_ = 0;
  int weight_versions_ = 1;
  std::vector<StageShare> shares_;
  std::vector<std::vector<std::vector<std::uint32_t>>> owners_;  // by shard, by group
};

/// The schedule that the plan asks for.
pipeline::Spec pipeline_spec(const Plan& plan);

/// Cuts the model as the plan says: by hand, or so that the slowest stage is as fast as can be, by
/// what layers cost by their shapes. Errors name the setting and the nearest one that works; among
/// them a staleness bound that leaves no room for the versions that the schedule keeps.
Expected<std::shared_ptr<const Stages>> make_stages(const Plan& plan, const Model& model,
                                                    const Layout& layout,
                                                    const Consistency& consistency);

}  // namespace leeway
