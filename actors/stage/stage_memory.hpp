#pragma once
// Predicts the peak memory of a stage from shapes.
#include <cstdint>

#include "actors/stages.hpp"
#include "models/model.hpp"
#include "plan/plan.hpp"
#include "policies/pipeline/stage_memory.hpp"

namespace leeway {

using pipeline::StageMemory;

/// Weights, gradients and activations, with the largest micro-batches that the plan allows, on a
/// processor. Excludes the working memory of operations, messages that no operation has read, and
/// the optimizer's state at the shards.
StageMemory predicted_memory(const Plan& plan, const Model& model, const Stages& stages,
                             std::uint32_t stage);

}  // namespace leeway
