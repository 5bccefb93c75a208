#pragma once
// show_status: fetches and prints the status of a job from the processes of a cluster.
#include <string>

#include "runtime/cluster/options.hpp"

namespace leeway {

/// Asks the process at `name` and all nodes of its job, and prints their status as a table or as
/// JSON. Returns the exit code: 0 done, 1 no answer, 2 refused.
int show_status(const std::string& name, const ClusterOptions& options, bool json);

}  // namespace leeway
