#pragma once
// shrink: minimises a failing plan.
#include <functional>

#include "plan/plan.hpp"

namespace leeway::sim {

/// Removes faults, stragglers, workers, pipelines, stages, shards, iterations and settings one by
/// one, and keeps each change after which the plan still `fails`. Tries at most `most_trials`
/// plans.
Plan shrink(Plan plan, const std::function<bool(const Plan&)>& fails, int most_trials = 300);

}  // namespace leeway::sim
