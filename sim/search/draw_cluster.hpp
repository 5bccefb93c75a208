#pragma once
// draw_cluster: a simulated cluster and its faults for a search.
#include "core/rng.hpp"
#include "plan/plan.hpp"

namespace leeway::sim {

/// Runs `plan` on two to four node agents, and replaces its faults by those of nodes, their
/// connections and their workers. All shards are on one node, or in the program, and worker 0 and
/// the first pipeline are on node 1. These two processes hear each other within the detection time,
/// and do not end, so that no drawn fault ends a correct run. All other nodes may end, freeze,
/// leave, or lose and get back connections at any time, and further nodes may join. `length`:
/// approximate duration of the run in seconds. `iterations`: of each worker.
void draw_cluster(Rng& rng, Plan& plan, double length, std::uint64_t iterations);

}  // namespace leeway::sim
