#include "policies/pipeline/stage_memory.hpp"

#include <algorithm>
#include <set>

#include "core/check.hpp"

namespace leeway::pipeline {

namespace {

std::int64_t times(std::int64_t bytes, std::int64_t count) {
  using Wide = __int128;
  return static_cast<std::int64_t>(std::min<Wide>(Wide{bytes} * count, kMostMemory));
}

/// A sum of times(bytes, count) over chunks.
std::int64_t sum_of(std::span<const ChunkMemory> chunks, const std::vector<int>& counts,
                    std::int64_t ChunkMemory::*bytes) {
  LW_CHECK(counts.size() == chunks.size(), counts.size(), chunks.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i)
    sum = std::min(sum + times(chunks[i].*bytes, counts[i]), kMostMemory);
  return sum;
}

/// Micro-batches of the shortest update with the moments of this one: between the beginning and
/// the end, in which at most chunks * 2 * stages micro-batches are under way, moments repeat.
int enough_micro_batches(const Spec& spec) {
  const int group = spec.micro_batches / std::max(1, spec.micro_batches / spec.stages);
  return std::min(spec.micro_batches, group * (2 * spec.chunks + 4));
}

/// Follows an update of a schedule that flushes; others have one chunk.
std::vector<HeldMicroBatches> moments_of(const Schedule& schedule, Spec spec, int stage) {
  spec.updates = 1;
  spec.micro_batches = enough_micro_batches(spec);
  const bool splits = schedule.peak_pending_backwards(spec, stage) > 0;
  const auto chunks = static_cast<std::size_t>(spec.chunks);
  const std::vector<int> none(chunks, 0);
  HeldMicroBatches held{none, none, none};
  std::set<HeldMicroBatches> moments;
  for (const Op& op : schedule.stage(spec, stage)) {
    const auto chunk = static_cast<std::size_t>(op.chunk);
    if (op.kind == OpKind::update) continue;
    if (op.kind == OpKind::forward) ++held.activations[chunk];
    if (op.kind == OpKind::backward_input) ++held.pending[chunk];
    const bool whole = op.kind == OpKind::backward;
    // Where some backwards are split, a whole one keeps at most as much while it runs.
    if (whole && splits) ++held.pending[chunk];
    held.recomputed = held.pending;
    if (whole && !splits) ++held.recomputed[chunk];
    moments.insert(held);
    if (op.kind == OpKind::backward_weights || (whole && splits)) --held.pending[chunk];
    if (gives_weight_gradient(op.kind)) --held.activations[chunk];
  }
  return {moments.begin(), moments.end()};
}

/// The most bytes of activations and pending gradients at once.
std::int64_t most_held(std::span<const ChunkMemory> chunks,
                       const std::vector<HeldMicroBatches>& moments) {
  std::int64_t most = 0;
  for (const HeldMicroBatches& held : moments)
    most = std::max(most, sum_of(chunks, held.activations, &ChunkMemory::kept) +
                              sum_of(chunks, held.pending, &ChunkMemory::pending) +
                              sum_of(chunks, held.recomputed, &ChunkMemory::shared));
  return most;
}

}  // namespace

StageCounts stage_counts(const Spec& spec, int stage) {
  const Schedule& schedule = **find_schedule(spec.schedule);
  Spec run = spec;
  run.updates = spec.stages;  // enough to fill a pipeline without a flush
  return {.versions = schedule.weight_versions(run, stage),
          .gradients = run.micro_batches > 1 ? 2 : 1,  // a single micro-batch writes the sum
          .activations = schedule.peak_activations(run, stage),
          .pending_backwards = schedule.peak_pending_backwards(run, stage),
          .moments = spec.chunks > 1 ? moments_of(schedule, spec, stage)
                                     : std::vector<HeldMicroBatches>()};
}

StageMemory stage_memory(const StageCounts& counts, std::span<const ChunkMemory> chunks,
                         int optimizer_slots) {
  std::int64_t parameters = 0, weights = 0, working = 0;
  for (const ChunkMemory& chunk : chunks) {
    weights += chunk.weights;
    parameters += chunk.weights + chunk.statistics;
    working = std::max(working, chunk.working);
  }
  // The pending micro-batches include the one in its backward for inputs.
  const ChunkMemory& only = chunks.front();
  const std::int64_t activations =
      chunks.size() > 1
          ? most_held(chunks, counts.moments)
          : times(only.kept, counts.activations) + times(only.pending, counts.pending_backwards) +
                times(only.shared, std::max(1, counts.pending_backwards));
  return {.weights = times(parameters, counts.versions),
          .gradients = times(parameters, counts.gradients),
          .optimizer = times(weights, optimizer_slots),
          .activations = std::min(activations, kMostMemory),
          .working = working};
}

}  // namespace leeway::pipeline
