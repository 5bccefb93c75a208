#include "actors/stage/pipeline_pieces.hpp"

#include <algorithm>

#include "actors/micro_batch.hpp"
#include "core/text.hpp"
#include "models/chunk_bytes.hpp"
#include "models/pieces.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {
namespace {

/// Caps a sum; one that overflows is negative.
std::int64_t at_most(std::int64_t ns) {
  return ns < 0 ? pipeline::kMostOfPiece : std::min(ns, pipeline::kMostOfPiece);
}

/// Whether the piece has only views, so that its output is its input.
bool is_view(const Model& model, const ModelPiece& piece) {
  for (int layer = piece.first; layer < piece.end; ++layer)
    if (!model.layer(layer).is_view()) return false;
  return true;
}

/// Piece::unread_bytes of a chunk that ends with this piece.
std::int64_t unread_bytes(const Model& model, const std::vector<ModelPiece>& pieces,
                          std::size_t index, std::int64_t batch) {
  std::size_t first = index;
  while (first > 0 && is_view(model, pieces[first])) --first;
  return unread_bytes(model, {pieces[first].first, pieces[index].end}, batch);
}

/// Times above pipeline::kMostOfPiece, three days per micro-batch, are capped to it. `times`: per
/// layer of the model.
pipeline::OpCosts costs_of(const ModelPiece& piece, std::span<const LayerTime> times) {
  pipeline::OpCosts ns{0, 0, 0, 0};
  for (int layer = piece.first; layer < piece.end; ++layer) {
    const LayerTime& time = times[static_cast<std::size_t>(layer)];
    ns.forward = at_most(ns.forward + at_most(time.forward));
    ns.backward_input = at_most(ns.backward_input + at_most(time.backward_input));
    ns.backward_weights = at_most(ns.backward_weights + at_most(time.backward_weights));
  }
  return ns;
}

/// Memory is that of micro-batches of `most` samples, times are those of the usual size.
std::vector<pipeline::Piece> pipeline_pieces(const Model& model, std::int64_t usual,
                                             std::int64_t most, std::span<const LayerTime> times) {
  const auto on = make_cpu_executor();
  const auto pieces = pieces_of(model, most, *on);
  std::vector<pipeline::Piece> out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ModelPiece& piece = pieces[i];
    out.push_back({.name = piece.name,
                   .kind = piece.kind,
                   .ns = costs_of(piece, times),
                   .output_bytes = piece.output_bytes / most * usual,
                   .handed_bytes = piece.output_bytes,
                   .kept_bytes = piece.kept_bytes,
                   .first_bytes = piece.first_bytes,
                   .unread_bytes = unread_bytes(model, pieces, i, most),
                   .gradient_bytes = piece.gradient_bytes,
                   .working_bytes = piece.working_bytes,
                   .weight_bytes = piece.weight_bytes,
                   .statistic_bytes = piece.statistic_bytes});
  }
  return out;
}

/// Per stage of the spec.
std::vector<bool> recomputing(const Plan& plan, const pipeline::Spec& spec) {
  std::vector<bool> recompute(static_cast<std::size_t>(spec.stages));
  for (const std::uint32_t stage : plan.pipeline.recompute)
    if (stage < recompute.size()) recompute[stage] = true;
  return recompute;
}

}  // namespace

pipeline::PartitionProblem partition_problem(const Plan& plan, const Model& model,
                                             const pipeline::Spec& spec, const plan::World& world,
                                             std::span<const LayerTime> times) {
  const std::int64_t usual = micro_batch_size(plan), most = largest_micro_batch(plan);
  std::vector<LayerTime> estimated;
  if (times.empty()) {
    estimated = estimated_times(model, usual, world.speed * 1e9, world.memory * 1e9);
    times = estimated;
  }
  const auto recompute = recomputing(plan, spec);
  const auto keys_and_labels = [&](bool last) {
    return key_and_label_bytes(model, last, most, recompute.back()) +
           gathered_bytes(model, last, most);
  };
  return {.pieces = pipeline_pieces(model, usual, most, times),
          .input_bytes = most * model.input().count() * static_cast<std::int64_t>(sizeof(float)),
          .key_bytes = keys_and_labels(false),
          .label_bytes = keys_and_labels(true) - keys_and_labels(false),
          .recompute = recompute,
          .devices = std::vector<pipeline::DeviceSpec>(static_cast<std::size_t>(spec.stages)),
          .link_bytes_per_second = static_cast<std::int64_t>(world.link * 1e9 / 8),
          .optimizer_slots = make_optimizer(plan.optimizer)->slots(),
          .spec = spec};
}

Expected<pipeline::Partition> find_partition(const pipeline::PartitionProblem& problem,
                                             const std::string& split, std::string_view setting) {
  if (split.empty()) return best_partition(problem);
  const auto refused = [&](const Error& error) { return Error{concat(setting, ": ", error.text)}; };
  const auto ends = parse_split(split, problem.pieces);
  if (!ends) return refused(ends.error());
  auto taken = pipeline::partition_at(problem, *ends);
  if (!taken) return refused(taken.error());
  return taken;
}

}  // namespace leeway
