#include "plan/devices.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/text.hpp"

namespace leeway {

bool DevicePlacement::cpu_only() const {
  const auto on_cpu = [](Device device) { return device == Device{}; };
  return std::all_of(workers_.begin(), workers_.end(), on_cpu) &&
         std::all_of(shards_.begin(), shards_.end(), on_cpu);
}

class DevicesParser {
 public:
  DevicesParser(const std::string& text, std::uint32_t workers, std::uint32_t shards)
      : text_(text), placement_(workers, shards) {}

  Expected<DevicePlacement> parse() {
    if (text_.find_first_of("=,") == std::string::npos) {
      if (Status status = assign_all(); !status) return status.error();
      return placement_;
    }
    for (const std::string& entry : comma_separated(text_))
      if (Status status = assign(entry); !status) return status.error();
    return placement_;
  }

 private:
  using Devices = std::vector<Device>;

  Status assign_all() {
    const auto device = parse_device(text_);
    if (!device) return device.error();
    std::fill(placement_.workers_.begin(), placement_.workers_.end(), *device);
    std::fill(placement_.shards_.begin(), placement_.shards_.end(), *device);
    return {};
  }

  Status assign(const std::string& entry) {
    const std::size_t sign = entry.find('=');
    if (sign == std::string::npos)
      return Error{concat("device: \"", entry,
                          "\" names no worker or shard; give a list such as "
                          "--device workers=cuda,worker0=cpu,shards=cuda")};
    const std::string name = entry.substr(0, sign);
    const auto device = parse_device(entry.substr(sign + 1));
    if (!device) return device.error();
    const bool workers = name.starts_with("worker");
    if (!workers && !name.starts_with("shard")) return unknown(name);
    return workers ? assign(placement_.workers_, name, "worker", *device)
                   : assign(placement_.shards_, name, "shard", *device);
  }

  /// `name` is `kind` and "s" or a number.
  static Status assign(Devices& devices, const std::string& name, std::string_view kind,
                       Device device) {
    const std::string_view suffix = std::string_view(name).substr(kind.size());
    if (suffix == "s") {
      std::fill(devices.begin(), devices.end(), device);
      return {};
    }
    std::uint32_t index = 0;
    const char* const suffix_end = suffix.data() + suffix.size();
    const auto [end, error] = std::from_chars(suffix.data(), suffix_end, index);
    if (error == std::errc::invalid_argument || end != suffix_end) return unknown(name);
    if (error != std::errc() || index >= devices.size())
      return Error{concat("device: there is no ", kind, ' ', suffix, "; give one from ", kind,
                          "0 to ", kind, devices.size() - 1, ", or more --", kind, 's')};
    devices[index] = device;
    return {};
  }
  static Status unknown(const std::string& name) {
    return Error{concat("device: \"", name,
                        "\" is not a worker or shard; give workers, shards, or one such as "
                        "worker0 or shard1")};
  }

  const std::string& text_;
  DevicePlacement placement_;
};

Expected<DevicePlacement> parse_devices(const std::string& text, std::uint32_t workers,
                                        std::uint32_t shards) {
  return DevicesParser(text, workers, shards).parse();
}

}  // namespace leeway
