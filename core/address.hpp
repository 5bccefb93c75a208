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

/// The kinds of actors. A standby is the second replica of the shard with its number. A node is the
/// process of a simulated cluster; only faults name it.
enum class RoleKind : std::uint8_t { scheduler, shard, worker, monitor, standby, host, node };

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
    case RoleKind::standby:
      return "standby";
    case RoleKind::host:
      return "host";
    case RoleKind::node:
      return "node";
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
/// The actor that takes over when the shard's actor is lost.
constexpr Address standby_of(ShardId id) {
  return {RoleKind::standby, id.value()};
}
/// Actors of scenarios and tests by their numbers: worker(2), shard(0).
constexpr Address worker(std::uint32_t number) {
  return {RoleKind::worker, number};
}
constexpr Address shard(std::uint32_t number) {
  return {RoleKind::shard, number};
}
constexpr Address standby(std::uint32_t number) {
  return {RoleKind::standby, number};
}
inline constexpr Address kScheduler{RoleKind::scheduler, 0};
inline constexpr Address kMonitor{RoleKind::monitor, 0};
/// The host itself, which sends interrupts.
inline constexpr Address kHost{RoleKind::host, 0};

/// Whether there can be several of a kind, told apart by their numbers.
constexpr bool is_numbered(RoleKind kind) {
  return kind == RoleKind::worker || kind == RoleKind::shard || kind == RoleKind::standby ||
         kind == RoleKind::node;
}

inline std::ostream& operator<<(std::ostream& out, Address address) {
  out << name_of(address.kind);
  if (is_numbered(address.kind)) out << ' ' << address.index;
  return out;
}

/// The spelling of plans and flags: "worker2", "shard0", "scheduler", "node1".
std::string spelled(Address address);
/// Parses that spelling; a plain number is a worker.
Expected<Address> parse_address(std::string_view text);

}  // namespace leeway
