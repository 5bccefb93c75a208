#pragma once
// Names of nodes as people give them: "HOST:PORT".
#include <cstdint>
#include <string>

#include "core/expected.hpp"

namespace leeway {

struct NodeName {
  std::string host;
  std::uint16_t port = 0;
};

/// "10.0.0.2:4242", "[::1]:4242". The error says what would be right.
Expected<NodeName> parse_node(const std::string& text);

/// Of this program's Leeway.
std::string leeway_version();

}  // namespace leeway
