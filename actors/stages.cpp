#include "actors/stages.hpp"

#include <algorithm>
#include <set>

#include "actors/stage/pipeline_pieces.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "models/gradient_sum.hpp"

namespace leeway {
namespace {

/// The layer of a stage that finishes the gradient of a shard's part: its own, or one that borrows
/// a parameter of that. kNone where the stage has neither.
int finishing_layer(const Model& model, const StageShare& share, const Bucket& part) {
  for (const ModelChunk& chunk : share.chunks) {
    if (chunk.has(part.layer)) return part.layer;
    for (int layer = chunk.first; layer < chunk.end; ++layer) {
      const int borrowed = model.borrowed_parameter(layer);
      if (borrowed != Model::kNone &&
          model.parameters()[static_cast<std::size_t>(borrowed)].layer == part.layer)
        return layer;
    }
  }
  return Model::kNone;
}

StageShare::AtShard share_at(const Model& model, const Layout& layout, const StageShare& share,
                             ShardId shard) {
  StageShare::AtShard at;
  struct Owed {
    Bucket part;
    std::uint32_t group;
  };
  std::vector<Owed> owed;
  for (const Bucket& part : layout.buckets(shard)) {
    const int layer = finishing_layer(model, share, part);
    if (layer == Model::kNone) continue;
    owed.push_back({{0, layer, part.blocks}, part.index});
    at.blocks.insert(at.blocks.end(), part.blocks.begin(), part.blocks.end());
  }
  std::stable_sort(owed.begin(), owed.end(),
                   [](const Owed& a, const Owed& b) { return a.part.layer > b.part.layer; });
  for (auto& one : owed) {
    one.part.index = static_cast<std::uint32_t>(at.parts.size());
    at.parts.push_back(std::move(one.part));
    at.groups.push_back(one.group);
  }
  std::sort(at.blocks.begin(), at.blocks.end());
  return at;
}

Expected<std::vector<ModelChunk>> snapshot(const Plan& plan, const Model& model,
                                           const pipeline::Spec& spec) {
  if (spec.stages == 1) return std::vector<ModelChunk>{ModelChunk::whole(model)};
  const plan::World world = plan.simulated.value_or(plan::World{});
  const auto problem = partition_problem(plan, model, spec, world);
  const auto partition = find_partition(problem, plan.pipeline.split, "pipeline.split");
  if (!partition) {
    if (!plan.pipeline.split.empty()) return partition.error();
    // "stages: ..." or "chunks: ...", of what there is no split at all.
    return Error{concat("pipeline.", partition.error().text)};
  }
  const auto pieces = pieces_of(model, 1, *make_cpu_executor());
  std::vector<ModelChunk> parts;
  for (const pipeline::Part& part : partition->parts)
    parts.push_back({pieces[static_cast<std::size_t>(part.first)].first,
                     pieces[static_cast<std::size_t>(part.end) - 1].end});
  return parts;
}

/// Whether there is such a schedule. Of workers that train the whole model only the name matters.
Status check_schedule(const pipeline::Spec& spec) {
  auto valid = spec.stages > 1 ? pipeline::validate(spec) : Status();
  if (const auto found = pipeline::find_schedule(spec.schedule); !found) valid = found.error();
  if (valid) return {};
  return Error{concat("pipeline.schedule: ", valid.error().text)};
}

}  // namespace

Stages::Stages(const Plan& plan, const Model& model, const Layout& layout, pipeline::Spec spec,
               std::vector<ModelChunk> parts)
    : spec_(std::move(spec)), chunks_(std::move(parts)) {
  const auto stages = static_cast<std::uint32_t>(spec_.stages);
  LW_CHECK(chunks_.size() == stages * static_cast<std::size_t>(spec_.chunks), chunks_.size());
  pipelines_ = plan.workers / stages;
  shares_.resize(stages);
  for (std::size_t i = 0; i < chunks_.size(); ++i) shares_[i % stages].chunks.push_back(chunks_[i]);
  for (const std::uint32_t stage : plan.pipeline.recompute)
    if (stage < stages) shares_[stage].recompute = true;
  owners_.resize(layout.shards());
  for (std::uint32_t index = 0; index < layout.shards(); ++index) {
    const ShardId shard(index);
    owners_[index].resize(layout.buckets(shard).size());
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      StageShare& share = shares_[stage];
      share.at.push_back(share_at(model, layout, share, shard));
      if (!share.at.back().parts.empty()) share.shards.push_back(shard);
      for (const std::uint32_t group : share.at.back().groups)
        owners_[index][group].push_back(stage);
    }
  }
  if (stages == 1) return;
  const pipeline::Schedule& schedule = **pipeline::find_schedule(spec_.schedule);
  asynchronous_ = schedule.asynchronous();
  for (int stage = 0; stage < spec_.stages; ++stage) {
    version_lag_ = std::max<std::int64_t>(version_lag_, schedule.version_lag(spec_, stage));
    weight_versions_ = std::max(weight_versions_, schedule.weight_versions(spec_, stage));
  }
}

std::vector<WorkerId> Stages::neighbours(WorkerId worker) const {
  const std::uint32_t stage = stage_of(worker), last = count() - 1;
  std::set<std::uint32_t> stages;
  if (stage > 0) stages.insert(stage - 1);
  if (stage < last) stages.insert(stage + 1);
  if (spec_.chunks > 1 && stage == 0) stages.insert(last);
  if (spec_.chunks > 1 && stage == last) stages.insert(0);
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
  if (!piped()) return concat("worker ", lead);
  return concat("pipeline ", lead.value() / count(), " (workers ", lead_of(lead), " to ",
                lead_of(lead).value() + count() - 1, ')');
}

pipeline::Spec pipeline_spec(const Plan& plan) {
  return {.schedule = plan.pipeline.schedule,
          .stages = static_cast<int>(plan.pipeline.stages),
          .micro_batches = static_cast<int>(plan.micro_batches),
          .chunks = static_cast<int>(plan.pipeline.chunks)};
}

Expected<std::shared_ptr<const Stages>> make_stages(const Plan& plan, const Model& model,
                                                    const Layout& layout,
                                                    const Consistency& consistency) {
  const pipeline::Spec spec = pipeline_spec(plan);
  if (auto valid = check_schedule(spec); !valid) return valid.error();
  auto parts = snapshot(plan, model, spec);
  if (!parts) return parts.error();
  auto stages = std::make_shared<Stages>(plan, model, layout, spec, std::move(*parts));
  const std::int64_t room = consistency.bound(Iteration());
  if (room != kUnbounded && stages->version_lag() > room)
    return Error{concat("pipeline.schedule: ", spec.schedule, " on ", spec.stages,
                        " stages computes on weights that are older by up to ",
                        stages->version_lag(), stages->version_lag() == 1 ? " update" : " updates",
                        ", and the staleness bound is ", room, "; give --staleness ",
                        stages->version_lag(),
                        " or more, or a schedule that empties the pipeline, "
                        "such as 1f1b")};
  return std::shared_ptr<const Stages>(std::move(stages));
}

}  // namespace leeway
