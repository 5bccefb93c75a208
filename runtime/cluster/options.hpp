#pragma once
// ClusterOptions: the nodes of a run, and the connections between their processes.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "transport/mesh.hpp"

namespace leeway {

struct ClusterOptions {
  std::vector<std::string> nodes;  // "HOST:PORT" of each node agent; empty: only this process
  std::string place;               // "shard0=1,worker2=3"; empty: spread
  Transport transport = Transport::automatic;
  std::string tls;                // folder of `leeway cert`; empty: only loopback connections
  Duration silence = seconds(2);  // time without a sign of life after which a node is suspected
  std::uint16_t port = 0;         // of this program, for nodes that join; 0: any free port
  std::uint32_t at_least = 0;     // nodes with which the run may start; 0: all
};

/// "a:4242,b:4242".
Expected<std::vector<std::string>> parse_nodes(const std::string& text);
/// One node per line; # begins a comment.
Expected<std::vector<std::string>> nodes_from_file(const std::string& path);
/// "auto", "tcp" or "shm".
Expected<Transport> parse_transport(const std::string& text);
std::string name_of(Transport transport);
/// "2s", "500ms".
Expected<Duration> parse_silence(const std::string& text);
/// "2s" or "500ms", for --silence.
std::string silence_text(Duration silence);
/// "30s", "10min".
Expected<Duration> parse_wait(const std::string& text);
/// "2"; at most `nodes`, the number of nodes.
Expected<std::uint32_t> parse_at_least(const std::string& text, std::size_t nodes);
/// "4242"; 0 is any free port.
Expected<std::uint16_t> parse_port(const std::string& text);
/// Checks that each node is listed once, and without TLS has a loopback address.
Status check_nodes(const ClusterOptions& options);
/// Without TLS a process listens only on loopback, otherwise on all addresses.
MeshOptions mesh_options(const ClusterOptions& options);

}  // namespace leeway
