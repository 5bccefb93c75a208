#pragma once
// Names of nodes: "HOST:PORT".
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

struct NodeName {
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "10.0.0.2:4242" or "[::1]:4242". The error gives the correct form.
Expected<NodeName> parse_node(const std::string& text);

/// "10.0.0.2:4242", or "[::1]:4242".
std::string node_name(const std::string& host, std::uint16_t port);

/// The host at which others reach a process that listens on `address`. If that is all addresses, it
/// is the one from which the process reaches these nodes: other machines may not know its name.
std::string reachable_at(const std::string& address, const std::vector<std::string>& nodes);

/// The version of this program's Leeway.
std::string leeway_version();

}  // namespace leeway
