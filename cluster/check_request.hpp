#pragma once
// How a node agent checks a request to host a part of a job.
#include <optional>

#include "core/files.hpp"
#include "messages/node.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Adds a problem to the answer for each reason for which this machine cannot host its part:
/// another version, a model that cannot be built, missing devices and files. Without problems,
/// returns the plan as an agent uses it. `disk`: the files of this machine. `has_loops`: the
/// process has a loop of a user for its worker.
std::optional<Plan> check_request(const node::Ask& ask, Files& disk, bool has_loops,
                                  node::Answer& answer);

}  // namespace leeway
