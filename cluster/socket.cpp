#include "cluster/socket.hpp"

#include <unistd.h>

namespace leeway::cluster {

Socket::~Socket() {
  if (number_ >= 0) close(number_);
}

}  // namespace leeway::cluster
