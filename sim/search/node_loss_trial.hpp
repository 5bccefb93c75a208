#pragma once
// Node loss trials: a run on a simulated cluster whose nodes are lost, one after the other.
#include "sim/search/trial.hpp"

namespace leeway::sim {

/// Runs the plan, whose world has agents, with standby shards under all checkers. Whenever all
/// standbys are in sync, one node is killed, frozen, cut off, or leaves. A node may also leave
/// during the recovery. The drawn faults of nodes are left out, because a shard is lost with its
/// last replica.
///
/// The run must end well. The plan, with its seed, determines the trial.
Trial try_node_losses(Plan plan, const MakeJob& make);

}  // namespace leeway::sim
