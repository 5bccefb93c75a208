#pragma once
// SampleSupply: the samples that are not leased, and the counts of leased samples and iterations.
//
// The data are one share, or one share for each worker (DataSplit). A request names the shares from
// which it may get samples; partial samples may be of any share.
//
// Returned samples are leased first, then fresh ones in the order of each epoch's permutation.
// Partial samples are leased before all others, and with a limit of iterations they take no more of
// these than before. So a run does not end with samples that only some buckets have.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/scheduler/partial_iterations.hpp"
#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"

namespace leeway {

/// Positions [begin, end) of an epoch's permutation.
struct SampleRange {
  Epoch epoch;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const SampleRange&) const = default;
};

class SampleSupply {
 public:
  struct Limits {
    std::int64_t data_size = 0;  // samples of an epoch
    /// The first position of each share, then data_size; empty: there is one share.
    std::vector<std::int64_t> shares;
    std::int64_t total_samples = 0;      // to train over the whole run; 0: no limit
    std::uint64_t total_iterations = 0;  // of all workers together; 0: no limit
  };
  /// Samples of one lease, and the buckets that already have their gradients. All samples of a
  /// lease are from one portion, so they share its list.
  struct Portion {
    SampleRange samples;
    AppliedBuckets applied;
    std::uint32_t batch = 0;  // least batch of its lease: of partial samples, with such a limit

    bool is_partial() const { return !applied.empty(); }
  };
  /// The other terms of a lease.
  struct Terms {
    Iteration first;
    std::uint32_t batch = 1;
    std::uint32_t round_samples = 1;
  };

  struct State {
    std::deque<Portion> returned;
    std::vector<std::int64_t> fresh;  // by share: samples leased for the first time, in all epochs
    std::uint64_t samples_leased = 0;
    std::uint64_t iterations_leased = 0;
    std::uint64_t next_lease = 1;
  };

  explicit SampleSupply(Limits limits) : SampleSupply(std::move(limits), State()) {}
  /// Continues with the samples that are left in a state.
  SampleSupply(Limits limits, State state);

  /// Up to `count` consecutive samples of the first of these shares that has some; of partial ones,
  /// up to their batch if that is larger. Empty without samples, or if the next ones are not of the
  /// epoch `only`.
  Portion take(std::int64_t count, std::optional<Epoch> only = std::nullopt,
               std::span<const std::uint32_t> shares = kFirstShare);
  /// Makes and counts the lease of a portion. Its batch is at least that of the portion.
  msg::Lease lease(Portion portion, const Terms& terms);
  /// Takes back positions [begin, end) of a lease; the buckets of the list have their gradients.
  SampleRange give_back(const msg::Lease& lease, std::int64_t begin, std::int64_t end,
                        AppliedBuckets applied);
  /// The whole lease.
  SampleRange give_back(const msg::Lease& lease) {
    return give_back(lease, lease.begin, lease.end, lease.applied);
  }

  bool has_any() const;
  /// The same for these shares.
  bool has_any(std::span<const std::uint32_t> shares) const;
  std::uint32_t shares() const { return static_cast<std::uint32_t>(data_.fresh.size()); }
  /// True if some buckets have the gradients of a returned sample.
  bool has_partial() const;
  /// Samples that were never leased; without a limit, those of one epoch.
  std::int64_t fresh_left() const;
  /// Samples that were leased for the first time.
  std::int64_t fresh() const;
  /// The epoch of the next fresh sample; of several shares, the mean.
  Epoch epoch() const { return Epoch(fresh() / limits_.data_size); }
  std::uint64_t samples_leased() const { return data_.samples_leased; }
  /// Iterations that may still be leased, if there is a limit.
  std::uint64_t iterations_left() const {
    return limits_.total_iterations - std::min(limits_.total_iterations, data_.iterations_leased);
  }
  bool at_last_iteration() const {
    return limits_.total_iterations > 0 && data_.iterations_leased >= limits_.total_iterations;
  }

  const State& state() const { return data_; }

 private:
  static constexpr std::uint32_t kFirstShare[] = {0};

  std::int64_t size_of(std::uint32_t share) const {
    return limits_.shares[share + 1] - limits_.shares[share];
  }
  std::int64_t fresh_left(std::uint32_t share) const;
  bool may_take(const Portion& portion, std::span<const std::uint32_t> shares) const;

  Limits limits_;
  State data_;
};

}  // namespace leeway
