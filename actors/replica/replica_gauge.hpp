#pragma once
// ReplicaGauge: what a primary knows of its standby, for the status of its process.
#include <atomic>
#include <cstdint>

namespace leeway {

/// Any thread may read it.
struct ReplicaGauge {
  enum class Standby : std::uint8_t { none, seeding, in_sync };
  std::atomic<Standby> standby{Standby::none};
  std::atomic<std::uint64_t> behind{0};  // relays without an acknowledgement
};

}  // namespace leeway
