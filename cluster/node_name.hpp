#pragma once
// Names of nodes: "HOST:PORT".
#include <cstdint>
#include <string>

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

/// The version of this program's Leeway.
std::string leeway_version();

}  // namespace leeway
