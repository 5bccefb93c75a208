#pragma once
// DevicePlacement: the device of each worker and shard, parsed from the setting `device` of a plan.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "tensor/device.hpp"

namespace leeway {

class DevicePlacement {
 public:
  DevicePlacement(std::uint32_t workers, std::uint32_t shards)
      : workers_(workers), shards_(shards) {}

  /// Requires an index below the number of workers or shards.
  Device worker(std::uint32_t index) const { return workers_.at(index); }
  Device shard(std::uint32_t index) const { return shards_.at(index); }
  const std::vector<Device>& workers() const { return workers_; }
  const std::vector<Device>& shards() const { return shards_; }
  /// True if all workers and shards are on the CPU.
  bool cpu_only() const;

 private:
  friend class DevicesParser;
  std::vector<Device> workers_, shards_;
};

/// Parses one device for all ("cpu", "cuda", "cuda:1"), or a comma-separated list of assignments:
/// "workers=cuda,worker3=cpu,shards=cuda:0". `workers` and `shards` assign to all of them,
/// worker<N> and shard<N> to one. A later assignment overrides an earlier one; actors without an
/// assignment use the CPU. Does not check whether the machine has these devices.
Expected<DevicePlacement> parse_devices(const std::string& text, std::uint32_t workers,
                                        std::uint32_t shards);

}  // namespace leeway
