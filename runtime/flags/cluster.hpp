#pragma once
// The flags of the group "Cluster" of scenario programs and node agents.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cluster/options.hpp"

namespace leeway {

struct ClusterFlags {
  std::optional<std::string> nodes, hosts, at_least, place, port, transport, tls, silence;
};

void add_cluster_flags(CLI::App& app, ClusterFlags& flags);
/// Adds the flags that scenario programs and node agents share.
void add_link_flags(CLI::App& app, ClusterFlags& flags, const std::string& group);

/// Options from the flags. Without --nodes and --hosts, the nodes come from LEEWAY_NODES, except in
/// a simulation. The error names the flag.
Expected<ClusterOptions> read_cluster(const ClusterFlags& flags, bool simulated);
/// Only transport, TLS and silence.
Expected<ClusterOptions> read_links(const ClusterFlags& flags);

}  // namespace leeway
