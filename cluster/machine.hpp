#pragma once
// this_machine: what a node reports about its machine.
#include <string>

#include "messages/node.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// This machine and process, without a job. `tls`: the process's TLS folder; empty: none.
node::Machine this_machine(const std::string& tls);
/// What determines the last bits of what a shard of the plan computes on this machine, for people:
/// "x86-64-v4 instructions". Replicas of a shard need the same.
std::string arithmetic_of(const Plan& plan);

}  // namespace leeway
