#pragma once
// Membership and data, between a worker and the scheduler: values of worker_scheduler.capnp, which
// documents each field.
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/time.hpp"

namespace leeway {

/// Each life of a worker has incarnations of its own, as one that was evicted while it lives comes
/// back under the next: far more than it is evicted.
inline constexpr std::uint32_t kIncarnationsOfALife = 1u << 16;

/// Lives and incarnations are counted from 1.
constexpr Incarnation first_incarnation(std::uint32_t life) {
  return Incarnation((life - 1) * kIncarnationsOfALife + 1);
}
constexpr std::uint32_t life_of(Incarnation incarnation) {
  return (incarnation.value() + kIncarnationsOfALife - 1) / kIncarnationsOfALife;
}

}  // namespace leeway

namespace leeway::msg {

struct Join {};

struct Start {
  Iteration iteration;
  std::uint64_t number = 0;
};

struct WantLease {
  Iteration next;
  Clock clock;
  std::uint32_t iterations = 0;
  std::uint64_t samples = 0;
  Duration waited;
  Duration computed;
};

struct AppliedBucket {
  std::uint16_t stage = 0;
  std::uint16_t shard = 0;
  std::uint32_t bucket = 0;
  auto operator<=>(const AppliedBucket&) const = default;
};

struct Lease {
  LeaseId lease;
  Epoch epoch;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Iteration first_iteration;
  std::uint32_t batch = 0;
  std::uint32_t round_samples = 0;
  std::vector<AppliedBucket> applied;

  /// Iterations that the lease fills: a short one at its end counts, an empty lease is one
  /// iteration.
  std::int64_t iterations() const { return end == begin ? 1 : (end - begin + batch - 1) / batch; }
};

struct NoData {
  Iteration next;
};

struct PushDropped {
  Iteration next;
};

struct Idle {
  Clock clock;
  std::uint64_t start = 0;
};

struct Diverged {
  Iteration iteration;
  double loss = 0;
  std::string layer;
};

struct Stop {};

struct Leave {
  WorkerId worker;
};

struct Stopped {
  Clock clock;
  std::uint64_t start = 0;
};

}  // namespace leeway::msg
