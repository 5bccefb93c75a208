#pragma once
// Where memory lives.
#include <cstdint>
#include <ostream>
#include <string>

#include "core/expected.hpp"

namespace leeway {

struct Device {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  int index = 0;
  bool operator==(const Device&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, Device device) {
  switch (device.kind) {
    case Device::Kind::host:
      return out << "host";
    case Device::Kind::cuda:
      return out << "cuda:" << device.index;
  }
  return out;
}

/// "cpu", "cuda" (the first GPU) or "cuda:2". Does not check that the device exists.
Expected<Device> parse_device(const std::string& text);

}  // namespace leeway
