#pragma once
// Stage memory: what a stage of a pipeline holds at its worst moment, predicted from shapes.
#include <cstdint>

#include "actors/stages.hpp"
#include "messages/plan.hpp"
#include "models/model.hpp"

namespace leeway {

/// Bytes that a stage holds between two operations. What one operation needs while it runs comes in
/// addition, and the optimizer's state is at the shards.
struct StageMemory {
  std::int64_t weights = 0;      // of all versions that the schedule keeps, statistics included
  std::int64_t gradients = 0;    // of the iteration, and of a micro-batch
  std::int64_t activations = 0;  // of all micro-batches on their way; samples and labels included

  std::int64_t total() const { return weights + gradients + activations; }
};

/// With the full batch, on a processor. With several chunks a stage, micro-batches are taken to be
/// at the chunk that keeps most: then it is an upper bound.
StageMemory predicted_memory(const Plan& plan, const Model& model, const Stages& stages,
                             std::uint32_t stage);

}  // namespace leeway
