#pragma once
// ListenAddress: the address of a flag such as --metrics, on which this process answers requests.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/expected.hpp"

namespace leeway {

struct ListenAddress {
  std::string host;        // as given
  std::string numeric;     // the address of the host; IPv6 in brackets
  std::uint16_t port = 0;  // 0: any free port
};

/// Parses [HOST:]PORT, looks HOST up, and tries to listen there. HOST is a name, an IPv4 address,
/// or an IPv6 address in brackets, 127.0.0.1 by default. An error begins with `flag` and the text.
Expected<ListenAddress> find_listen_address(std::string_view flag, const std::string& text);

/// Connects to the port of this host and hangs up: wakes a server that waits for a connection.
void knock(const ListenAddress& address);

/// "http://HOST:PORT".
std::string http_url(const std::string& host, int port);

}  // namespace leeway
