#pragma once
// this_machine: what a node reports about its machine.
#include <string>

#include "messages/node.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// This machine and process, without a job. `tls`: the process's TLS folder; empty: none.
node::Machine this_machine(const std::string& tls);
/// Names the arithmetic with which shards of the plan compute on this machine, for people:
/// "x86-64-v4 instructions". Replicas of a shard need the same one, to compute the same bits.
std::string arithmetic_of(const Plan& plan);

}  // namespace leeway
