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
  run.updates = spec.stages;  // in so many a pipeline that is never emptied is filled
  return {.versions = schedule.weight_versions(run, stage),
          .gradients = run.micro_batches > 1 ? 2 : 1,  // one that is alone is the sum
          .activations = schedule.peak_activations(run, stage),
          .open_halves = schedule.peak_open_halves(run, stage)};
}

StageMemory stage_memory(const StageCounts& counts, std::span<const ChunkMemory> parts,
                         int optimizer_slots) {
  std::int64_t parameters = 0, weights = 0, kept = 0, open = 0, shared = 0, working = 0;
  for (const ChunkMemory& part : parts) {
    weights += part.weights;
    parameters += part.weights + part.statistics;
    kept = std::max(kept, part.kept);
    open = std::max(open, part.open);
    shared += part.shared;
    working = std::max(working, part.working);
  }
  // A micro-batch in its first half is one of those between the halves already.
  const std::int64_t activations = times(kept, counts.activations) +
                                   times(open, counts.open_halves) +
                                   times(shared, std::max(1, counts.open_halves));
  return {.weights = times(parameters, counts.versions),
          .gradients = times(parameters, counts.gradients),
          .optimizer = times(weights, optimizer_slots),
          .activations = std::min(activations, kMostMemory),
          .working = working};
}

}  // namespace leeway::pipeline
