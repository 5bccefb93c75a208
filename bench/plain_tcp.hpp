#pragma once
// Plain TCP on this host, as a baseline without Leeway.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "bench/child.hpp"
#include "transport/socket.hpp"

namespace leeway::bench {

/// A connection. Its functions call fail() if it breaks, except take().
class PlainTcp {
 public:
  explicit PlainTcp(transport::Socket socket) : socket_(std::move(socket)) {
    const int yes = 1;
    setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  static PlainTcp call(std::uint16_t port) {
    transport::Socket made(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = loopback(port);
    if (connect(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      fail("cannot open a plain connection");
    return PlainTcp(std::move(made));
  }
  static sockaddr_in loopback(std::uint16_t port) {
    return {.sin_family = AF_INET,
            .sin_port = htons(port),
            .sin_addr = {htonl(INADDR_LOOPBACK)},
            .sin_zero = {}};
  }

  void put(const void* bytes, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const auto* const next = static_cast<const char*>(bytes) + done;
      const ssize_t now = send(socket_.number(), next, count - done, MSG_NOSIGNAL);
      if (now <= 0) fail("a plain connection broke");
      done += static_cast<std::size_t>(now);
    }
  }
  /// False if the other end has closed the connection.
  bool take(void* bytes, std::size_t count) {
    for (std::size_t done = 0; done < count;) {
      const ssize_t now = recv(socket_.number(), static_cast<char*>(bytes) + done, count - done, 0);
      if (now <= 0) return false;
      done += static_cast<std::size_t>(now);
    }
    return true;
  }

 private:
  transport::Socket socket_;
};

class PlainListener {
 public:
  PlainListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = PlainTcp::loopback(0);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (bind(socket_.number(), any, size) != 0 || listen(socket_.number(), 16) != 0)
      fail("cannot listen");
    getsockname(socket_.number(), any, &size);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  PlainTcp accept() {
    return PlainTcp(transport::Socket(::accept(socket_.number(), nullptr, nullptr)));
  }

 private:
  transport::Socket socket_;
  std::uint16_t port_ = 0;
};

}  // namespace leeway::bench
