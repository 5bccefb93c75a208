#include "actors/stages.hpp"

#include <algorithm>
#include <set>

#include "actors/stage/pipeline_pieces.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/groups.hpp"

namespace leeway {
namespace {

/// The layer of a stage that completes the gradients of a bucket: the bucket's own layer, or one
/// that borrows a parameter of it. kNone if the stage has neither.
int completing_layer(const Model& model, const StageShare& share, const Bucket& bucket) {
  for (const ModelChunk& chunk : share.chunks) {
    if (chunk.has(bucket.layer)) return bucket.layer;
    for (int layer = chunk.first; layer < chunk.end; ++layer) {
      const int borrowed = model.borrowed_parameter(layer);
      if (borrowed != Model::kNone &&
          model.parameters()[static_cast<std::size_t>(borrowed)].layer == bucket.layer)
        return layer;
    }
  }
  return Model::kNone;
}

StageShare::AtShard share_at(const Model& model, const Layout& layout, const StageShare& share,
                             ShardId shard) {
  StageShare::AtShard at;
  struct Pushed {
    Bucket bucket;
    std::uint32_t layout_index;
  };
  std::vector<Pushed> pushed;
  for (const Bucket& bucket : layout.buckets(shard)) {
    const int layer = completing_layer(model, share, bucket);
    if (layer == Model::kNone) continue;
    pushed.push_back({{0, layer, bucket.blocks}, bucket.index});
    at.blocks.insert(at.blocks.end(), bucket.blocks.begin(), bucket.blocks.end());
  }
  std::stable_sort(pushed.begin(), pushed.end(), [](const Pushed& a, const Pushed& b) {
    return a.bucket.layer > b.bucket.layer;
  });
  for (auto& one : pushed) {
    one.bucket.index = static_cast<std::uint32_t>(at.buckets.size());
    at.buckets.push_back(std::move(one.bucket));
    at.shard_buckets.push_back(one.layout_index);
  }
  std::sort(at.blocks.begin(), at.blocks.end());
  return at;
}

Expected<std::vector<ModelChunk>> split(const Plan& plan, const Model& model,
                                        const pipeline::Spec& spec) {
  if (spec.stages == 1) return std::vector<ModelChunk>{ModelChunk::whole(model)};
  const plan::World world = plan.simulated.value_or(plan::World{});
  const auto problem = partition_problem(plan, model, spec, world);
  const auto partition = find_partition(problem, plan.pipeline.split, "pipeline.split");
  if (!partition) {
    if (!plan.pipeline.split.empty()) return partition.error();
    // "stages: ..." or "chunks: ...": no split exists.
    return Error{concat("pipeline.", partition.error().text)};
  }
  const auto pieces = pieces_of(model, 1, *make_cpu_executor());
  std::vector<ModelChunk> chunks;
  for (const pipeline::PieceRange& range : partition->chunks)
    chunks.push_back({pieces[static_cast<std::size_t>(range.first)].first,
                      pieces[static_cast<std::size_t>(range.end) - 1].end});
  return chunks;
}

/// Checks the schedule; without stages only its name.
Status check_schedule(const pipeline::Spec& spec) {
  auto valid = spec.stages > 1 ? pipeline::validate(spec) : Status();
  if (const auto found = pipeline::find_schedule(spec.schedule); !found) valid = found.error();
  if (valid) return {};
  return Error{concat("pipeline.schedule: ", valid.error().text)};
}

}  // namespace

Stages::Stages(const Plan& plan, const Model& model, const Layout& layout, pipeline::Spec spec,
               std::vector<ModelChunk> chunks)
    : spec_(std::move(spec)),
      placement_(pipeline::placement_of(spec_)),
      chunks_(std::move(chunks)) {
  const auto stages = static_cast<std::uint32_t>(spec_.stages);
  LW_CHECK(chunks_.size() == stages * static_cast<std::size_t>(spec_.chunks), chunks_.size());
  const std::uint32_t per_member = workers_per_member(plan);
  pipelines_ = plan.workers / per_member;
  shares_.resize(per_member);
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    shares_[static_cast<std::size_t>(placement_.stage_of(static_cast<int>(i)))].chunks.push_back(
        chunks_[i]);
  for (const std::uint32_t stage : plan.pipeline.recompute)
    if (stage < stages) shares_[stage].recompute = true;
  owners_.resize(layout.shards());
  for (std::uint32_t index = 0; index < layout.shards(); ++index) {
    const ShardId shard(index);
    owners_[index].resize(layout.buckets(shard).size());
    for (std::uint32_t stage = 0; stage < per_member; ++stage) {
      StageShare& share = shares_[stage];  // of a group's other workers: without chunks or blocks
      share.at.push_back(share_at(model, layout, share, shard));
      if (!share.at.back().buckets.empty()) share.shards.push_back(shard);
      for (const std::uint32_t bucket : share.at.back().shard_buckets)
        owners_[index][bucket].push_back(stage);
    }
  }
  if (stages == 1) return;
  const pipeline::Schedule& schedule = **pipeline::find_schedule(spec_.schedule);
  asynchronous_ = schedule.asynchronous();
  for (int stage = 0; stage < spec_.stages; ++stage) {
    version_lags_.push_back(schedule.version_lag(spec_, stage));
    weight_versions_ = std::max(weight_versions_, schedule.weight_versions(spec_, stage));
  }
}

std::vector<WorkerId> Stages::neighbours(WorkerId worker) const {
  const std::uint32_t stage = stage_of(worker), last = count() - 1;
  std::set<std::uint32_t> stages;
  if (grouped()) {
    if (stage > 0) return {lead_of(worker)};
    std::vector<WorkerId> others;
    for (std::uint32_t other = 1; other <= last; ++other)
      others.push_back(this->worker(worker, other));
    return others;
  }
  if (stage > 0) stages.insert(stage - 1);
  if (stage < last) stages.insert(stage + 1);
  const bool is_round_robin =
      spec_.chunks > 1 && placement_.shape == pipeline::Placement::Shape::round_robin;
  if (is_round_robin && stage == 0) stages.insert(last);
  if (is_round_robin && stage == last) stages.insert(0);
  stages.erase(stage);
  std::vector<WorkerId> workers;
  for (const std::uint32_t other : stages) workers.push_back(this->worker(lead_of(worker), other));
  return workers;
}

std::string Stages::name_of(WorkerId worker) const {
  if (!piped()) return concat("worker ", worker);
  return concat("pipeline ", worker.value() / count(), " stage ", stage_of(worker), " (worker ",
                worker, ')');
}

std::string Stages::name_of_member(WorkerId lead) const {
  if (!has_several()) return concat("worker ", lead);
  return concat(piped() ? "pipeline " : "group ", lead.value() / count(), " (workers ",
                lead_of(lead), " to ", lead_of(lead).value() + count() - 1, ')');
}

std::string Stages::end_of(WorkerId worker, const std::string& reason) const {
  if (!has_several()) return reason;
  if (!piped()) return concat("worker ", worker, ": ", reason);
  return concat("worker ", worker, " (stage ", stage_of(worker), "): ", reason);
}

pipeline::Spec pipeline_spec(const Plan& plan) {
  return {.schedule = pipeline::current_name(plan.pipeline.schedule),
          .stages = static_cast<int>(plan.pipeline.stages),
          .micro_batches = static_cast<int>(plan.micro_batches),
          .chunks = static_cast<int>(plan.pipeline.chunks)};
}

Expected<std::shared_ptr<const Stages>> make_stages(const Plan& plan, const Model& model,
                                                    const Layout& layout,
                                                    const Consistency& consistency) {
  const pipeline::Spec spec = pipeline_spec(plan);
  if (auto valid = check_schedule(spec); !valid) return valid.error();
  auto chunks = split(plan, model, spec);
  if (!chunks) return chunks.error();
  auto stages = std::make_shared<Stages>(plan, model, layout, spec, std::move(*chunks));
  if (plan.pipeline.predict_weights && !stages->asynchronous())
    return Error{concat("pipeline.predict_weights: ", spec.schedule,
                        " flushes the pipeline, so gradients are computed on the newest weights; "
                        "leave it out, or give --schedule weight_stashing or 2bw")};
  const std::int64_t room = consistency.bound();
  if (room != kUnbounded && stages->version_lag() > room)
    return Error{concat(
        "pipeline.schedule: ", spec.schedule, " on ", spec.stages,
        " stages computes gradients on weights that are older by up to ", stages->version_lag(),
        stages->version_lag() == 1 ? " update" : " updates", ", and the staleness bound ",
        consistency.has_moving_bound() ? "can fall to " : "is ", room, "; give --staleness ",
        stages->version_lag(), " or more, or a schedule with a flush, such as 1f1b")};
  return std::shared_ptr<const Stages>(std::move(stages));
}

}  // namespace leeway
