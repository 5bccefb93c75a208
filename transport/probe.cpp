#include "transport/probe.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/this_host.hpp"

namespace leeway::transport {
namespace {

std::string local_host_of(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Null, and the reason in `why`, if there are none.
Addresses addresses_of(const std::string& host, std::uint16_t port, int type, std::string& why) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = type;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    why = gai_strerror(error);
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

Probe probe_one(const addrinfo& address, std::int64_t deadline_ns) {
  Socket made(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int number = made.number();
  if (!made) return {.why = std::strerror(errno)};
  int error = 0;
  if (connect(number, address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    const int ready = wait_for(number, POLLOUT, deadline_ns);
    if (ready < 0) return {.why = std::strerror(errno)};
    if (ready == 0) return {.why = "no answer"};
    socklen_t size = sizeof error;
    getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == ECONNREFUSED) return {.reach = Reach::refused, .why = "no process listens there"};
  if (error != 0) return {.why = std::strerror(error)};
  return {.reach = Reach::listens, .local_host = local_host_of(number), .socket = std::move(made)};
}

}  // namespace

Probe probe(const std::string& host, std::uint16_t port, Duration limit) {
  std::string why;
  const Addresses all = addresses_of(host, port, SOCK_STREAM, why);
  if (!all) return {.why = why};
  const std::int64_t deadline_ns = steady_ns() + limit.ns;
  Probe result{.why = "no address"};
  for (const addrinfo* address = all.get(); address; address = address->ai_next) {
    result = probe_one(*address, deadline_ns);
    if (result.reach == Reach::listens) break;
  }
  return result;
}

std::string local_host_towards(const std::string& host, std::uint16_t port) {
  std::string why;
  const Addresses all = addresses_of(host, port, SOCK_DGRAM, why);
  for (const addrinfo* address = all.get(); address; address = address->ai_next) {
    const Socket made(socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (made && connect(made.number(), address->ai_addr, address->ai_addrlen) == 0)
      return local_host_of(made.number());
  }
  return "";
}

std::string unresolved(const std::string& host) {
  std::string why;
  addresses_of(host, 0, SOCK_STREAM, why);
  return why;
}

bool is_any(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

}  // namespace leeway::transport
