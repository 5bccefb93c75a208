#pragma once
// Makes a plan that fails smaller, as long as it still fails.
#include <functional>

#include "plan/plan.hpp"

namespace leeway::sim {

/// Leaves out faults, stragglers, workers (or pipelines, and stages of them), shards, iterations
/// and settings one after the other, and keeps what `fails`. Tries `most_trials` plans at most.
Plan shrink(Plan plan, const std::function<bool(const Plan&)>& fails, int most_trials = 300);

}  // namespace leeway::sim
