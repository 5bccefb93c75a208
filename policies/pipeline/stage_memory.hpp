#pragma once
// Stage memory: what a stage of a pipeline needs, computed from the needs of its chunks and from
// what its schedule keeps.
#include <cstdint>
#include <span>
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The memory of one chunk of a model. Bytes.
struct ChunkMemory {
  // Per micro-batch:
  std::int64_t kept = 0;     // from forward until backward
  std::int64_t pending = 0;  // between the backward for inputs and that for weights
  // For any number of micro-batches:
  std::int64_t shared = 0;   // with recompute: activations of the micro-batch in backward, and of
                             // each one that waits for its backward for weights
  std::int64_t working = 0;  // while a layer is computed
  std::int64_t weights = 0;  // trained; one version
  std::int64_t statistics = 0;  // not trained; one version
};

/// The memory of a stage. Bytes.
struct StageMemory {
  std::int64_t weights = 0;      // all versions that the schedule keeps, with statistics
  std::int64_t gradients = 0;    // the iteration's sum, and the gradients of one micro-batch
  std::int64_t optimizer = 0;    // at the shards
  std::int64_t activations = 0;  // of all micro-batches in flight, with samples, labels, and
                                 // gradients that wait for a backward for weights
  std::int64_t working = 0;      // while a layer is computed
  std::int64_t total() const { return weights + gradients + optimizer + activations + working; }
};

/// Larger figures are capped to this, so that a sum of a few does not overflow.
inline constexpr std::int64_t kMostMemory = std::int64_t{1} << 58;

/// The micro-batches in each chunk of a stage at one moment.
struct HeldMicroBatches {
  std::vector<int> activations;  // from forward until backward
  std::vector<int> pending;      // waiting for their backward for weights
  std::vector<int> recomputed;   // in backward, or pending
  auto operator<=>(const HeldMicroBatches&) const = default;
};

/// The number of each that a stage keeps at once.
struct StageCounts {
  int versions = 1;           // of its weights
  int gradients = 1;          // the sum, and with several micro-batches those of one
  int activations = 1;        // micro-batches from forward until backward
  int pending_backwards = 0;  // micro-batches that wait for their backward for weights
  /// With several chunks: at all moments at which the stage may keep the most.
  std::vector<HeldMicroBatches> moments = {};
};

/// For a run of any length: ignores Spec::updates. Requires a valid spec.
StageCounts stage_counts(const Spec& spec, int stage);

/// The memory of a stage with these chunks. `optimizer_slots`: arrays of optimizer state, each as
/// large as the weights. Requires `counts` of a spec with as many chunks.
StageMemory stage_memory(const StageCounts& counts, std::span<const ChunkMemory> chunks,
                         int optimizer_slots);

}  // namespace leeway::pipeline
