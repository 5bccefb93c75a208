#pragma once
// The optimizer of the shards, where it is not the plan's, and the plans that it fits.
#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The optimizer that shards apply to pushes: the plan's; with a momentum correction SGD that
/// decays weights as much as the plan's momentum would; with local steps the outer optimizer, which
/// takes the weights before them minus those after as a gradient (Reddi et al., "Adaptive Federated
/// Optimization", ICLR 2021, algorithm 1).
plan::Optimizer shard_optimizer(const Plan& plan);

/// Whether workers can take the plan's local steps. The error names the setting to change.
Status check_local_steps(const Plan& plan);

}  // namespace leeway
