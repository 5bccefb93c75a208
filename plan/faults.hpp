#pragma once
// The part of a plan that says what goes wrong: stragglers and faults; see plan.capnp.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/address.hpp"

namespace leeway::plan {

struct ConstantFactor {
  double factor = 4;
  bool operator==(const ConstantFactor&) const = default;
};
struct Bursts {
  double factor = 4, share = 0.2;
  std::uint32_t length = 50;
  bool operator==(const Bursts&) const = default;
};
struct Pareto {
  double alpha = 1.5, cap = 100;
  bool operator==(const Pareto&) const = default;
};
struct Pauses {
  double length_ms = 200;
  std::variant<std::uint32_t, double> every = std::uint32_t{50};  // iterations, or seconds
  bool operator==(const Pauses&) const = default;
};
struct Decay {
  double factor = 4;
  std::uint32_t iterations = 1000;
  bool operator==(const Decay&) const = default;
};
struct Sharing {
  double factor = 4;
  std::uint32_t on = 100, off = 300;
  bool operator==(const Sharing&) const = default;
};
struct Trace {
  std::string file;
  bool operator==(const Trace&) const = default;
};
using StragglerKind = std::variant<ConstantFactor, Bursts, Pareto, Pauses, Decay, Sharing, Trace>;
struct Straggler {
  std::uint32_t worker = 0;
  bool all = false;
  StragglerKind kind;
  bool operator==(const Straggler&) const = default;
};
/// No worker is slowed more, by all its stragglers together.
inline constexpr double kMaxSlowdown = 1e6;

struct Throws {
  bool operator==(const Throws&) const = default;
};
struct Killed {
  bool operator==(const Killed&) const = default;
};
struct Crash {
  double back = 0;  // seconds; 0: never
  bool operator==(const Crash&) const = default;
};
/// Why an actor has ended that the plan lets crash: to be started again, or for good.
inline constexpr const char* kPlannedCrash = "fault of the plan: crash";
inline constexpr const char* kPlannedEnd = "fault of the plan: crash for good";
constexpr const char* reason_of(const Crash& crash) {
  return crash.back > 0 ? kPlannedCrash : kPlannedEnd;
}
struct Joins {
  bool operator==(const Joins&) const = default;
};
struct Freeze {
  double seconds = 1;
  bool operator==(const Freeze&) const = default;
};
struct Slow {
  double delay_ms = 5, seconds = 1;
  bool operator==(const Slow&) const = default;
};
struct Breaks {
  Address peer{RoleKind::shard, 0};
  double seconds = 0.1;
  bool operator==(const Breaks&) const = default;
};
struct Delay {
  Address peer{RoleKind::shard, 0};
  double delay_ms = 5, seconds = 1;
  bool operator==(const Delay&) const = default;
};
struct Silence {
  Address peer{RoleKind::shard, 0};
  double seconds = 0.1;
  bool operator==(const Silence&) const = default;
};
struct Partition {
  std::vector<Address> with;
  double seconds = 1;
  bool operator==(const Partition&) const = default;
};
struct SlowLink {
  double factor = 10, seconds = 1;
  bool operator==(const SlowLink&) const = default;
};
struct ClockStops {
  double seconds = 1;
  bool operator==(const ClockStops&) const = default;
};
struct Leaves {
  bool operator==(const Leaves&) const = default;
};
using FaultKind = std::variant<Throws, Killed, Crash, Joins, Freeze, Slow, Breaks, Delay, Silence,
                               Partition, SlowLink, ClockStops, Leaves>;
/// When a fault begins: at an iteration, or at a time in seconds.
using FaultTime = std::variant<std::int64_t, double>;
struct Fault {
  Address actor{RoleKind::worker, 0};
  FaultTime at;
  double spread = 0;
  FaultKind kind;
  bool operator==(const Fault&) const = default;
};

}  // namespace leeway::plan
