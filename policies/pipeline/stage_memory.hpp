#pragma once
// Stage memory: what a stage of a pipeline needs, from what its parts of the model need and from
// what its schedule keeps. Whoever predicts memory asks here.
#include <cstdint>
#include <span>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// What one part of a model needs. Bytes.
struct ChunkMemory {
  // Of a micro-batch:
  std::int64_t kept = 0;  // from forward until backward
  std::int64_t open = 0;  // in addition between the halves of a backward
  // However many micro-batches there are:
  std::int64_t shared = 0;      // activations that are computed again, and so are there for one
                                // micro-batch, and for each between the halves of its backward
  std::int64_t working = 0;     // while a layer is computed
  std::int64_t weights = 0;     // trained, of one version
  std::int64_t statistics = 0;  // not trained, likewise
};

/// What a stage needs, by what for. Bytes.
struct StageMemory {
  std::int64_t weights = 0;      // of all versions that the schedule keeps, statistics included
  std::int64_t gradients = 0;    // of the iteration, and of the micro-batch that is added to it
  std::int64_t optimizer = 0;    // at the shards
  std::int64_t activations = 0;  // of all micro-batches on their way; samples and labels, and
                                 // gradients between the halves of a backward included
  std::int64_t working = 0;      // while a layer is computed
  std::int64_t total() const { return weights + gradients + optimizer + activations + working; }
};

/// Larger figures count as this, so that a few of them can be added up.
inline constexpr std::int64_t kMostMemory = std::int64_t{1} << 58;

/// How many of each a stage keeps at once.
struct StageCounts {
  int versions = 1;     // of its weights
  int gradients = 1;    // the sum, and that of a micro-batch where there are several
  int activations = 1;  // micro-batches from forward until backward
  int open_halves = 0;  // micro-batches between the halves of a backward
};

/// In a run: with updates without end, whatever the spec says. Requires a valid spec.
StageCounts stage_counts(const Spec& spec, int stage);

/// Of a stage with these parts of the model, one for each chunk. `optimizer_slots`: arrays of
/// optimizer state, each as large as the weights. With several chunks, micro-batches are taken to
/// be at the one that keeps most: then it is an upper bound.
StageMemory stage_memory(const StageCounts& counts, std::span<const ChunkMemory> parts,
                         int optimizer_slots);

}  // namespace leeway::pipeline
