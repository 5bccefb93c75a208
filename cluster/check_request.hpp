#pragma once
// How a node agent checks a request to host a part of a job.
#include <optional>

#include "core/files.hpp"
#include "messages/node.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Adds a problem to the answer for each reason for which this machine cannot host its part:
/// another version, a model that cannot be built, missing devices and files. Without problems,
/// returns the plan as an agent uses it. `disk`: the files of this machine.
std::optional<Plan> check_request(const node::Ask& ask, Files& disk, node::Answer& answer);

}  // namespace leeway
