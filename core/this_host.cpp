#include "core/this_host.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>

namespace leeway {

std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::string utc_now(bool milliseconds) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  std::size_t end = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  if (milliseconds) {
    const auto ms = now.time_since_epoch() / std::chrono::milliseconds(1) % 1000;
    end += static_cast<std::size_t>(
        std::snprintf(text + end, sizeof text - end, ".%03d", static_cast<int>(ms)));
  }
  return std::string(text, end) + 'Z';
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "";
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return address == "::1" || address == "localhost";
}

std::uint64_t random_word() {
  std::random_device device;
  std::uint64_t word = 0;
  while (word == 0) word = std::uint64_t{device()} << 32 | device();
  return word;
}

}  // namespace leeway
