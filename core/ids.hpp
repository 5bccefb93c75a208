#pragma once
// Strong integer types that do not convert into each other: Id names a thing, Count counts things.
#include <compare>
#include <cstdint>
#include <ostream>

namespace leeway {

/// Ids compare and print, but have no arithmetic.
template <class Tag, class Rep = std::uint32_t>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

/// Counts compare only with their own kind. `a - b` is a plain signed number.
template <class Tag>
class Count {
 public:
  constexpr Count() = default;
  constexpr explicit Count(std::int64_t value) : value_(value) {}
  constexpr std::int64_t value() const { return value_; }
  constexpr auto operator<=>(const Count&) const = default;
  constexpr Count operator+(std::int64_t n) const { return Count(value_ + n); }
  constexpr std::int64_t operator-(Count other) const { return value_ - other.value_; }
  constexpr Count& operator++() {
    ++value_;
    return *this;
  }

 private:
  std::int64_t value_ = 0;
};

template <class Tag, class Rep>
std::ostream& operator<<(std::ostream& out, Id<Tag, Rep> id) {
  return out << id.value();
}
template <class Tag>
std::ostream& operator<<(std::ostream& out, Count<Tag> count) {
  return out << count.value();
}

using WorkerId = Id<struct WorkerTag>;
using ShardId = Id<struct ShardTag>;
using BlockId = Id<struct BlockTag>;
using LeaseId = Id<struct LeaseTag, std::uint64_t>;
/// Another process that is connected to this one; never reused.
using PeerId = Id<struct PeerTag>;
/// The part of a worker's run, or of its pipeline's, that one Start begins: until it is idle, is
/// evicted or stops. The scheduler numbers the sessions of each pipeline, upwards from 1, when it
/// admits the pipeline. Messages of a worker carry the session that it has begun last; 0: none.
using Session = Id<struct SessionTag, std::uint64_t>;

/// Names a worker's request to join, which may be repeated. Later requests have larger numbers.
using JoinNonce = Id<struct JoinNonceTag, std::uint64_t>;
/// The first nonce of a launch, the start of a worker's actor by its host. Launches count from 1. A
/// worker that is evicted while it lives joins again with the next nonce.
constexpr JoinNonce first_nonce(std::uint32_t launch) {
  return JoinNonce((std::uint64_t{launch} << 32) + 1);
}
constexpr std::uint32_t launch_of(JoinNonce nonce) {
  return static_cast<std::uint32_t>(nonce.value() >> 32);
}

/// Version of the membership; each admission, idling and eviction starts a new view.
using View = Id<struct ViewTag, std::uint64_t>;

/// Index of a worker's iteration, from 0.
using Iteration = Count<struct IterationTag>;
/// Number of iterations that a worker has finished; never time.
using Clock = Count<struct ClockTag>;
/// Number of pushes applied to a block.
using Version = Count<struct VersionTag>;
using Epoch = Count<struct EpochTag>;

}  // namespace leeway
