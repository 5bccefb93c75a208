#pragma once
// Socket: owns a socket.
#include <cstdint>
#include <utility>

namespace leeway::transport {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// poll() of one socket for these events until `until_ns` (steady clock), also if a signal
/// interrupts it: above 0 if the socket is ready, 0 if the time is over, -1 with errno.
int wait_for(int socket, short events, std::int64_t until_ns);

}  // namespace leeway::transport
