#pragma once
// Loss trials: a run whose shards lose one replica after the other.
#include "sim/search/trial.hpp"

namespace leeway::sim {

/// Runs the plan with standby shards, under all checkers. Whenever both replicas of a shard are in
/// sync, one of them is lost at a random time, and starts again at another. The drawn faults of the
/// scheduler and the shards are left out, because a shard is lost with its last replica.
///
/// In a world with agents, nodes are lost instead (node_loss_trial.hpp).
///
/// The run must end well. The plan, with its seed, determines the trial.
Trial try_losses(Plan plan, const MakeJob& make);

}  // namespace leeway::sim
