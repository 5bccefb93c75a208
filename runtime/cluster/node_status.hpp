#pragma once
// What the processes of a cluster tell about a job, gathered and shown.
#include <string>

#include "runtime/cluster/options.hpp"

namespace leeway {

/// Asks the process at `name`, and all nodes of its job that it names, prints what they know as a
/// table or as JSON, and returns the exit code: 0 done, 1 nobody answered there, 2 refused.
int show_status(const std::string& name, const ClusterOptions& options, bool json);

}  // namespace leeway
