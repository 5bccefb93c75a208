#pragma once
// TcpProxy: forwards connections to a port of this host; can pause and end them.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "transport/socket.hpp"

namespace leeway::test {

class Socket : public transport::Socket {
 public:
  using transport::Socket::Socket;
  bool write(const std::string& bytes) {
    return send(number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
};

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline Socket connect_to(std::uint16_t port) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  LW_CHECK(connect(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
           port);
  return made;
}

class TcpProxy {
 public:
  explicit TcpProxy(std::uint16_t target)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), target_(target) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    LW_CHECK(bind(listener_.number(), any, size) == 0 && listen(listener_.number(), 100) == 0);
    getsockname(listener_.number(), any, &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~TcpProxy() {
    ending_ = true;
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  /// Forwards no bytes until release() or cut().
  void hold() {
    hold_ = true;
    while (!holding_) std::this_thread::yield();
  }
  void release() { hold_ = false; }
  /// Ends all connections and drops their bytes.
  void cut() {
    cut_ = true;
    while (cut_) std::this_thread::yield();
  }
  /// Forwards new connections to another port.
  void turn_to(std::uint16_t target) { target_ = target; }

 private:
  void run() {
    std::vector<std::pair<Socket, Socket>> joined;
    std::vector<char> bytes(256 << 10);
    while (!ending_) {
      if (cut_) {
        joined.clear();
        hold_ = false;
        cut_ = false;
      }
      holding_ = hold_.load();
      if (holding_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      std::vector<pollfd> polled = {{listener_.number(), POLLIN, 0}};
      for (const auto& [a, b] : joined) {
        polled.push_back({a.number(), POLLIN, 0});
        polled.push_back({b.number(), POLLIN, 0});
      }
      if (poll(polled.data(), polled.size(), 5) <= 0) continue;
      for (std::size_t i = joined.size(); i-- > 0;) {
        auto& [a, b] = joined[i];
        const bool fine = (!polled[1 + 2 * i].revents || pass(a, b, bytes)) &&
                          (!polled[2 + 2 * i].revents || pass(b, a, bytes));
        if (!fine) joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (polled[0].revents)
        joined.emplace_back(Socket(accept(listener_.number(), nullptr, nullptr)),
                            connect_to(target_));
    }
  }
  static bool pass(Socket& from, Socket& to, std::vector<char>& bytes) {
    const ssize_t count = read(from.number(), bytes.data(), bytes.size());
    return count > 0 && to.write(std::string(bytes.data(), static_cast<std::size_t>(count)));
  }

  Socket listener_;
  std::atomic<std::uint16_t> target_;
  std::uint16_t port_ = 0;
  std::atomic<bool> cut_{false}, hold_{false}, holding_{false}, ending_{false};
  std::thread thread_;
};

}  // namespace leeway::test
