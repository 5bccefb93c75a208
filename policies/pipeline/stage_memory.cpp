#include "policies/pipeline/stage_memory.hpp"

#include <algorithm>

namespace leeway::pipeline {

namespace {

std::int64_t times(std::int64_t bytes, std::int64_t count) {
  using Wide = __int128;
  return static_cast<std::int64_t>(std::min<Wide>(Wide{bytes} * count, kMostMemory));
}

}  // namespace

StageCounts stage_counts(const Spec& spec, int stage) {
  const Schedule& schedule = **find_schedule(spec.schedule);
  Spec run = spec;
  run.updates = spec.stages;  // enough to fill a pipeline without a flush
  return {.versions = schedule.weight_versions(run, stage),
          .gradients = run.micro_batches > 1 ? 2 : 1,  // a single micro-batch writes the sum
          .activations = schedule.peak_activations(run, stage),
          .pending_backwards = schedule.peak_pending_backwards(run, stage)};
}

StageMemory stage_memory(const StageCounts& counts, std::span<const ChunkMemory> chunks,
                         int optimizer_slots) {
  std::int64_t parameters = 0, weights = 0, kept = 0, pending = 0, shared = 0, working = 0;
  for (const ChunkMemory& chunk : chunks) {
    weights += chunk.weights;
    parameters += chunk.weights + chunk.statistics;
    kept = std::max(kept, chunk.kept);
    pending = std::max(pending, chunk.pending);
    shared += chunk.shared;
    working = std::max(working, chunk.working);
  }
  // The pending micro-batches include the one in its backward for inputs.
  const std::int64_t activations = times(kept, counts.activations) +
                                   times(pending, counts.pending_backwards) +
                                   times(shared, std::max(1, counts.pending_backwards));
  return {.weights = times(parameters, counts.versions),
          .gradients = times(parameters, counts.gradients),
          .optimizer = times(weights, optimizer_slots),
          .activations = std::min(activations, kMostMemory),
          .working = working};
}

}  // namespace leeway::pipeline
