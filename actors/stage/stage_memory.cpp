#include "actors/stage/stage_memory.hpp"

#include <vector>

#include "actors/micro_batch.hpp"
#include "models/chunk_bytes.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

StageMemory predicted_memory(const Plan& plan, const Model& model, const Stages& stages,
                             std::uint32_t stage) {
  const auto counts = pipeline::stage_counts(stages.spec(), static_cast<int>(stage));
  const StageShare& share = stages.share(stage);
  const std::int64_t samples = largest_micro_batch(plan);
  std::vector<pipeline::ChunkMemory> parts;
  for (const ModelChunk& part : share.chunks) {
    const ChunkBytes bytes = chunk_bytes(
        model, part, samples, {.halves = counts.open_halves > 0, .recompute = share.recompute});
    parts.push_back(
        {.kept = bytes.kept() + gathered_bytes(model, part.end == model.layers(), samples),
         .open = bytes.open,
         .shared = bytes.shared,
         .working = 0,
         .weights = bytes.weights,
         .statistics = bytes.statistics});
  }
  return pipeline::stage_memory(counts, parts, 0);
}

}  // namespace leeway
