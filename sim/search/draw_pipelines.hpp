#pragma once
// What a search draws of pipelines: stages, schedule, micro-batches, cuts, and who waits for whom.
#include <memory>

#include "actors/job.hpp"
#include "core/rng.hpp"

namespace leeway::sim {

/// Makes workers the stages of one to three pipelines, by a schedule that allows what is drawn,
/// with a consistency that leaves room for the versions that it keeps. Where the data of `base` are
/// made, its model is another chain of layers, deep enough, which is trained at a lower rate and
/// does not diverge; else it stays. Returns the model; null, and the plan stays as it is, where
/// that cannot be cut.
std::shared_ptr<const Model> draw_pipelines(const Job& base, Rng& rng, Plan& plan);

}  // namespace leeway::sim
