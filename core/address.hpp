#pragma once
// Address: names an actor as the receiver of messages, on any node.
#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "core/expected.hpp"
#include "core/ids.hpp"

namespace leeway {

enum class RoleKind : std::uint8_t { scheduler, shard, worker, monitor, host };

constexpr std::string_view name_of(RoleKind kind) {
  switch (kind) {
    case RoleKind::scheduler:
      return "scheduler";
    case RoleKind::shard:
      return "shard";
    case RoleKind::worker:
      return "worker";
    case RoleKind::monitor:
      return "monitor";
    case RoleKind::host:
      return "host";
  }
  return "?";
}

struct Address {
  RoleKind kind = RoleKind::host;
  std::uint32_t index = 0;
  constexpr auto operator<=>(const Address&) const = default;
};

constexpr Address address_of(WorkerId id) {
  return {RoleKind::worker, id.value()};
}
constexpr Address address_of(ShardId id) {
  return {RoleKind::shard, id.value()};
}
/// Actors of scenarios and tests by their numbers: worker(2), shard(0).
constexpr Address worker(std::uint32_t number) {
  return {RoleKind::worker, number};
}
constexpr Address shard(std::uint32_t number) {
  return {RoleKind::shard, number};
}
inline constexpr Address kScheduler{RoleKind::scheduler, 0};
inline constexpr Address kMonitor{RoleKind::monitor, 0};
/// The host itself, which sends interrupts.
inline constexpr Address kHost{RoleKind::host, 0};

inline std::ostream& operator<<(std::ostream& out, Address address) {
  out << name_of(address.kind);
  if (address.kind == RoleKind::worker || address.kind == RoleKind::shard)
    out << ' ' << address.index;
  return out;
}

/// The spelling of plans and flags: "worker2", "shard0", "scheduler".
std::string spelled(Address address);
/// Parses that spelling; a plain number is a worker.
Expected<Address> parse_address(std::string_view text);

}  // namespace leeway
