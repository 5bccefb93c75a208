#pragma once
// ClusterOptions: over which nodes a run spreads, and how their processes talk.
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/mesh.hpp"
#include "core/expected.hpp"

namespace leeway {

struct ClusterOptions {
  std::vector<std::string> nodes;  // "HOST:PORT" of each node agent; empty: all in this process
  std::string place;               // "shard0=1,worker2=3"; empty: spread
  Transport transport = Transport::automatic;
  std::string tls;                // folder of `leeway cert`; empty: loopback alone
  Duration silence = seconds(2);  // without a sign of life, after which a node is suspected
  std::uint16_t port = 0;         // of this program, for who joins; 0: any
};

/// "a:4242,b:4242", each a node.
Expected<std::vector<std::string>> parse_nodes(const std::string& text);
/// One node a line; what follows # is a comment.
Expected<std::vector<std::string>> nodes_from_file(const std::string& path);
/// "auto", "tcp" or "shm".
Expected<Transport> parse_transport(const std::string& text);
/// "2s", "500ms".
Expected<Duration> parse_silence(const std::string& text);
/// "4242"; 0 is any.
Expected<std::uint16_t> parse_port(const std::string& text);
/// Whether they can be called: each once, and without TLS on this machine.
Status check_nodes(const ClusterOptions& options);
/// Without TLS a process listens on loopback alone.
MeshOptions mesh_options(const ClusterOptions& options);

}  // namespace leeway
