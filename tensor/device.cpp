#include "tensor/device.hpp"

#include <charconv>
#include <system_error>

#include "core/text.hpp"

namespace leeway {

Expected<Device> parse_device(const std::string& text) {
  constexpr std::string_view kCuda = "cuda";
  const Error unknown{concat("device: \"", text, "\" is not known; give cpu, cuda or cuda:0")};
  if (text == "cpu") return Device{};
  if (text == kCuda) return Device{Device::Kind::cuda, 0};
  if (!text.starts_with("cuda:")) return unknown;
  Device device{Device::Kind::cuda, -1};
  const char* const end = text.data() + text.size();
  const auto [parsed, failed] = std::from_chars(text.data() + kCuda.size() + 1, end, device.index);
  if (failed != std::errc() || parsed != end || device.index < 0) return unknown;
  return device;
}

}  // namespace leeway
