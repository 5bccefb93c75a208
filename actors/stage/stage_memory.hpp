#pragma once
// Stage memory: what a stage of a pipeline holds at its worst moment, predicted from shapes.
#include <cstdint>

#include "actors/stages.hpp"
#include "models/model.hpp"
#include "plan/plan.hpp"
#include "policies/pipeline/stage_memory.hpp"

namespace leeway {

using pipeline::StageMemory;

/// Weights, gradients and activations; with the largest micro-batches that the plan allows, on a
/// processor. What one operation needs while it runs comes in addition, and so does what neighbours
/// have sent and no operation has read; the optimizer's state is at the shards.
StageMemory predicted_memory(const Plan& plan, const Model& model, const Stages& stages,
                             std::uint32_t stage);

}  // namespace leeway
