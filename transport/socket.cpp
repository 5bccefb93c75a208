#include "transport/socket.hpp"

#include <unistd.h>

namespace leeway::transport {

Socket::~Socket() {
  if (number_ >= 0) close(number_);
}

}  // namespace leeway::transport
