#include "tensor/device.hpp"

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway {

Expected<Device> parse_device(const std::string& text) {
  constexpr std::string_view kCuda = "cuda";
  const Error unknown{concat("device: \"", text, "\" is not known; give cpu, cuda or cuda:0")};
  if (text == "cpu") return Device{};
  if (text == kCuda) return Device{Device::Kind::cuda, 0};
  if (!text.starts_with("cuda:")) return unknown;
  const auto index = parse_number<int>(std::string_view(text).substr(kCuda.size() + 1));
  if (!index || *index < 0) return unknown;
  return Device{Device::Kind::cuda, *index};
}

}  // namespace leeway
