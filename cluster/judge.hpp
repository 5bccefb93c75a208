#pragma once
// What a node agent says to the question whether it could host a part of a job.
#include <optional>
#include <string>
#include <vector>

#include "cluster/placement.hpp"
#include "messages/node.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Version, cores, memory and GPUs.
node::Answer about_this_machine();

Placement placement_of(const node::Ask& ask);

/// "shard 1, worker 0 and worker 2": what would be here.
std::string actors_text(const node::Ask& ask);

/// Looks for all that keeps this machine from hosting its part: another version, a model that
/// cannot be built here, devices and files that are not here. Returns the plan, as it is used on an
/// agent, when there is nothing.
std::optional<Plan> judge(const node::Ask& ask, std::vector<std::string>& problems);

}  // namespace leeway
