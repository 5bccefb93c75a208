#pragma once
// Probe: connects to an address within a time limit, and gives the reason for a failure.
#include <string>

#include "core/time.hpp"
#include "transport/socket.hpp"

namespace leeway::transport {

enum class Reach : std::uint8_t {
  listens,
  refused,  // the host answers, but no process listens
  nowhere,  // no answer in time, or no route to the host
};

struct Probe {
  Reach reach = Reach::nowhere;
  std::string why;         // no process was reached, for people
  std::string local_host;  // address of this host on that route
  Socket socket;           // connected, non-blocking
};

Probe probe(const std::string& host, std::uint16_t port, Duration limit);

/// The address of this host on the route to `host`; "" if there is no route, or no such host. Sends
/// nothing.
std::string local_host_towards(const std::string& host, std::uint16_t port);
/// Why the host's name or address cannot be resolved; empty if it can.
std::string unresolved(const std::string& host);

/// "0.0.0.0", "::": all addresses of the host.
bool is_any(const std::string& address);

}  // namespace leeway::transport
