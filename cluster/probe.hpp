#pragma once
// Probe: whether anybody listens at an address, found out within a limit of time.
//
// CAF's own calls block for as long as the system does, minutes where packets vanish, and tell
// little of why they fail; a mesh probes first.
#include <string>

#include "cluster/socket.hpp"
#include "core/time.hpp"

namespace leeway::cluster {

enum class Reach : std::uint8_t {
  listens,
  refused,  // the host is there, and nobody listens
  nowhere,  // no answer in time, or no way to the host
};

struct Probe {
  Reach reach = Reach::nowhere;
  std::string why;         // when nobody listens, in words
  std::string local_host;  // the address of this host on the way there
  Socket socket;           // connected, and does not block
};

Probe probe(const std::string& host, std::uint16_t port, Duration limit);

/// The address of this host from which packets go there; "" when none do, or the host is not known.
/// Sends nothing.
std::string local_host_towards(const std::string& host, std::uint16_t port);
/// Empty: the host's name or address means something here. Else why not, in words.
std::string unresolved(const std::string& host);

/// "127.0.0.1", "::1", "localhost": nobody else can call it.
bool is_loopback(const std::string& address);
/// "0.0.0.0", "::": all addresses of the host.
bool is_any(const std::string& address);

}  // namespace leeway::cluster
