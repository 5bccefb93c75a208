#pragma once
// this_machine: what a node reports about its machine.
#include <string>

#include "messages/node.hpp"

namespace leeway {

/// This machine and process, without a job. `tls`: the process's TLS folder; empty: none.
node::Machine this_machine(const std::string& tls);

}  // namespace leeway
