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
  std::vector<pipeline::ChunkMemory> chunks;
  for (const ModelChunk& chunk : share.chunks) {
    const ChunkBytes bytes =
        chunk_bytes(model, chunk, samples,
                    {.split_backward = counts.pending_backwards > 0, .recompute = share.recompute});
    chunks.push_back(
        {.kept = bytes.kept() + gathered_bytes(model, chunk.end == model.layers(), samples),
         .pending = bytes.pending,
         .shared = bytes.shared,
         .working = 0,
         .weights = bytes.weights,
         .statistics = bytes.statistics});
  }
  return pipeline::stage_memory(counts, chunks, 0);
}

}  // namespace leeway
