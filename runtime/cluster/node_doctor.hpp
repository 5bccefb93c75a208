#pragma once
// examine_nodes: `leeway doctor`, which checks the nodes of a cluster before a run.
#include "runtime/cluster/options.hpp"

namespace leeway {

/// Checks the nodes of `options`: version, clock, certificate, and the connections from here to
/// each node and between each two of them, in both directions. Prints tables, warnings and
/// problems, each with its node and its remedy, or all of it as JSON. Returns the exit code: 0 no
/// problem, 1 problems, 2 this process cannot check, 130 interrupted.
int examine_nodes(const ClusterOptions& options, bool json);

}  // namespace leeway
