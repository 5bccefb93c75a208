#include "transport/socket.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "core/this_host.hpp"

namespace leeway::transport {

Socket::~Socket() {
  if (number_ >= 0) close(number_);
}

int wait_for(int socket, short events, std::int64_t until_ns) {
  pollfd waiting{.fd = socket, .events = events, .revents = 0};
  int ready = 0;
  do {
    const std::int64_t left = until_ns - steady_ns();
    if (left <= 0) return 0;
    ready = poll(&waiting, 1, static_cast<int>(left / 1'000'000) + 1);
  } while (ready < 0 && errno == EINTR);
  return ready;
}

}  // namespace leeway::transport
