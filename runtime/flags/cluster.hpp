#pragma once
// The flags of the group "Cluster", for scenario programs and for node agents.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cluster/options.hpp"

namespace leeway {

struct ClusterFlags {
  std::optional<std::string> nodes, hosts, place, port, transport, tls, silence;
};

void add_cluster_flags(CLI::App& app, ClusterFlags& flags);
/// Those that an agent has too.
void add_link_flags(CLI::App& app, ClusterFlags& flags, const std::string& group);

/// Nodes from the flags, else from LEEWAY_NODES, which a simulation does not look at. The error
/// names the flag.
Expected<ClusterOptions> read_cluster(const ClusterFlags& flags, bool simulated);
/// Transport, TLS and silence alone.
Expected<ClusterOptions> read_links(const ClusterFlags& flags);

}  // namespace leeway
