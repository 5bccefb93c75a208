#pragma once
// SampleSupply: the samples that are not leased, and the counts of leased samples and iterations.
//
// Returned samples are leased first, then fresh ones in the order of each epoch's permutation.
// Partial samples are leased before all others, and with a limit of iterations they take no more of
// these than before. So a run does not end with samples that only some buckets have.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

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
    std::int64_t data_size = 0;          // samples of an epoch
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
    std::int64_t fresh = 0;  // samples leased for the first time, over all epochs
    std::uint64_t samples_leased = 0;
    std::uint64_t iterations_leased = 0;
    std::uint64_t next_lease = 1;
  };

  explicit SampleSupply(const Limits& limits) : limits_(limits) {}
  /// Continues with the samples that are left in a state.
  SampleSupply(const Limits& limits, State state) : limits_(limits), data_(std::move(state)) {}

  /// Up to `count` consecutive samples; of partial ones, up to their batch if that is larger. Empty
  /// without samples, or if the next ones are not of the epoch `only`.
  Portion take(std::int64_t count, std::optional<Epoch> only = std::nullopt);
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
  /// True if some buckets have the gradients of a returned sample.
  bool has_partial() const;
  /// Samples that were never leased; without a limit, those of one epoch.
  std::int64_t fresh_left() const;
  /// The epoch of the next fresh sample.
  Epoch epoch() const { return Epoch(data_.fresh / limits_.data_size); }
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
  Limits limits_;
  State data_;
};

}  // namespace leeway
