#pragma once
// draw_pipelines: random stages, schedule, micro-batches, split and consistency for a search.
#include <memory>

#include "actors/job.hpp"
#include "core/rng.hpp"

namespace leeway::sim {

/// Turns the workers of `plan` into one to three pipelines with a valid schedule, and draws a
/// consistency that permits the schedule's version lag. For synthetic data and a final linear layer
/// it also draws a deeper model, trained at a lower rate so that it does not diverge. Returns the
/// model. Returns null and leaves the plan unchanged if the model cannot be split.
std::shared_ptr<const Model> draw_pipelines(const Job& base, Rng& rng, Plan& plan);

}  // namespace leeway::sim
