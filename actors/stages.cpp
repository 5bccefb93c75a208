#include "actors/stages.hpp"

#include <algorithm>

#include "actors/pipeline_pieces.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "models/gradient_sum.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {
namespace {

/// The layer of a stage that finishes the gradient of a shard's part: its own, or one that borrows
/// a parameter of that. kNone where the stage has neither.
int finishing_layer(const Model& model, const StageShare& share, const Part& part) {
  for (const ModelPart& chunk : share.chunks) {
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
    Part part;
    std::uint32_t group;
  };
  std::vector<Owed> owed;
  for (const Part& part : layout.parts(shard)) {
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

/// What the partition is searched over: times by shapes, on a device like those of the plan's
/// world.
pipeline::PartitionProblem problem_of(const Plan& plan, const Model& model,
                                      const pipeline::Spec& spec) {
  const plan::World world = plan.simulated.value_or(plan::World{});
  const std::int64_t samples = (plan.batch + plan.micro_batches - 1) / plan.micro_batches;
  const auto on = make_cpu_executor();
  return {.pieces = pipeline_pieces(
              pieces_of(model, samples, *on),
              estimated_times(model, samples, world.speed * 1e9, world.memory * 1e9)),
          .input_bytes = samples * model.input().count() * static_cast<std::int64_t>(sizeof(float)),
          .devices = std::vector<pipeline::DeviceSpec>(static_cast<std::size_t>(spec.stages)),
          .link_bytes_per_second = static_cast<std::int64_t>(world.link * 1e9 / 8),
          .optimizer_slots = make_optimizer(plan.optimizer)->slots(),
          .spec = spec};
}

Expected<std::vector<ModelPart>> cut(const Plan& plan, const Model& model,
                                     const pipeline::Spec& spec) {
  if (spec.stages == 1 && spec.chunks == 1) return std::vector<ModelPart>{ModelPart::whole(model)};
  const auto on = make_cpu_executor();
  const auto pieces = pieces_of(model, 1, *on);
  const auto problem = problem_of(plan, model, spec);
  auto partition = [&]() -> Expected<pipeline::Partition> {
    if (plan.pipeline.split.empty()) return best_partition(problem);
    const auto ends = parse_split(plan.pipeline.split, problem.pieces);
    if (!ends) return Error{concat("pipeline.split: ", ends.error().text)};
    return partition_at(problem, *ends);
  }();
  if (!partition) return partition.error();
  std::vector<ModelPart> parts;
  for (const pipeline::Part& part : partition->parts)
    parts.push_back({pieces[static_cast<std::size_t>(part.first)].first,
                     pieces[static_cast<std::size_t>(part.end) - 1].end});
  return parts;
}

}  // namespace

Stages::Stages(const Plan& plan, const Model& model, const Layout& layout, pipeline::Spec spec,
               std::vector<ModelPart> parts)
    : spec_(std::move(spec)), parts_(std::move(parts)) {
  const auto stages = static_cast<std::uint32_t>(spec_.stages);
  LW_CHECK(parts_.size() == stages * static_cast<std::size_t>(spec_.chunks), parts_.size());
  pipelines_ = plan.workers / stages;
  shares_.resize(stages);
  for (std::size_t i = 0; i < parts_.size(); ++i) shares_[i % stages].chunks.push_back(parts_[i]);
  for (const std::uint32_t stage : plan.pipeline.recompute)
    if (stage < stages) shares_[stage].recompute = true;
  owners_.resize(layout.shards());
  for (std::uint32_t index = 0; index < layout.shards(); ++index) {
    const ShardId shard(index);
    owners_[index].resize(layout.parts(shard).size());
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
  for (int stage = 0; stage < spec_.stages; ++stage)
    version_lag_ = std::max<std::int64_t>(version_lag_, schedule.version_lag(spec_, stage));
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
  if (const auto valid = pipeline::validate(spec); !valid)
    return Error{concat("pipeline: ", valid.error().text)};
  auto parts = cut(plan, model, spec);
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
