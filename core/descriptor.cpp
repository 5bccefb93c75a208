#include "core/descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace leeway {

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

std::string system_reason() {
  return std::generic_category().message(errno);
}

}  // namespace leeway
