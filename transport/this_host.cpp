#include "transport/this_host.hpp"

#include <unistd.h>

#include <chrono>
#include <random>

namespace leeway {

std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::uint64_t random_word() {
  std::random_device device;
  std::uint64_t word = 0;
  while (word == 0) word = std::uint64_t{device()} << 32 | device();
  return word;
}

}  // namespace leeway
