#include "actors/pipeline_pieces.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {
namespace {

/// What does not fit into 64 bits is negative.
std::int64_t at_most(std::int64_t ns) {
  return ns < 0 ? pipeline::kMostOfPiece : std::min(ns, pipeline::kMostOfPiece);
}

}  // namespace

std::vector<pipeline::Piece> pipeline_pieces(const std::vector<ModelPiece>& pieces,
                                             std::span<const LayerTime> times) {
  std::vector<pipeline::Piece> out;
  for (const ModelPiece& piece : pieces) {
    pipeline::OpCosts ns{0, 0, 0, 0};
    for (int layer = piece.first; layer < piece.end; ++layer) {
      const LayerTime& time = times[static_cast<std::size_t>(layer)];
      ns.forward = at_most(ns.forward + at_most(time.forward));
      ns.backward_input = at_most(ns.backward_input + at_most(time.backward_input));
      ns.backward_weights = at_most(ns.backward_weights + at_most(time.backward_weights));
    }
    out.push_back({.name = piece.name,
                   .kind = piece.kind,
                   .ns = ns,
                   .output_bytes = piece.output_bytes,
                   .kept_bytes = piece.kept_bytes,
                   .first_bytes = piece.first_bytes,
                   .gradient_bytes = piece.gradient_bytes,
                   .working_bytes = piece.working_bytes,
                   .weight_bytes = piece.weight_bytes,
                   .statistic_bytes = piece.statistic_bytes});
  }
  return out;
}

pipeline::PartitionProblem partition_problem(const Plan& plan, const Model& model,
                                             const pipeline::Spec& spec, const plan::World& world,
                                             std::span<const LayerTime> times) {
  const std::int64_t samples = micro_batch_size(plan);
  const auto on = make_cpu_executor();
  std::vector<LayerTime> estimated;
  if (times.empty())
    estimated = estimated_times(model, samples, world.speed * 1e9, world.memory * 1e9);
  return {.pieces = pipeline_pieces(pieces_of(model, samples, *on),
                                    times.empty() ? std::span<const LayerTime>(estimated) : times),
          .input_bytes = samples * model.input().count() * static_cast<std::int64_t>(sizeof(float)),
          .devices = std::vector<pipeline::DeviceSpec>(static_cast<std::size_t>(spec.stages)),
          .link_bytes_per_second = static_cast<std::int64_t>(world.link * 1e9 / 8),
          .optimizer_slots = make_optimizer(plan.optimizer)->slots(),
          .spec = spec};
}

Expected<pipeline::Partition> find_partition(const pipeline::PartitionProblem& problem,
                                             const std::string& split, std::string_view setting) {
  if (split.empty()) return best_partition(problem);
  const auto ends = parse_split(split, problem.pieces);
  if (!ends) return Error{concat(setting, ": ", ends.error().text)};
  return partition_at(problem, *ends);
}

}  // namespace leeway
