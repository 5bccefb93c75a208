#pragma once
// LeaseQueue: the samples that a participant has been leased, by iteration, and its open request.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/fifo.hpp"
#include "core/ids.hpp"
#include "messages/worker_scheduler.hpp"

namespace leeway {

/// The samples of one iteration: positions [begin, end) of the epoch's permutation.
struct LeasedIteration {
  Epoch epoch;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint32_t round_samples = 1;
  std::vector<msg::AppliedBucket> applied;
  bool flushes = false;  // its pushes carry the residuals in full

  std::int64_t samples() const { return end - begin; }
  double weight() const {
    return static_cast<double>(samples()) / static_cast<double>(round_samples);
  }
};

class LeaseQueue {
 public:
  /// Drops all leases: `next` is the first iteration without one.
  void begin(Iteration next);

  /// Adds a lease; false for a repeated one.
  bool take_in(const msg::Lease& lease);
  bool take_in(const msg::NoData& no_data);
  /// Drops the iterations below `next`.
  void skip_to(Iteration next);

  /// The first iteration without a lease.
  Iteration next() const { return next_; }
  bool leased(Iteration iteration) const { return iteration < next_; }
  /// True if the scheduler has no samples now.
  bool no_data() const { return no_data_; }
  /// The samples of the next iteration. Requires that it is leased.
  LeasedIteration take();

  /// Whether to request the next lease now, so that it arrives before iteration `started`, the next
  /// to start, is done. False while an answer is missing, and without data.
  bool wants(Iteration started) const { return !asked_ && !no_data_ && next_ - started <= 1; }
  void ask() { asked_ = next_; }
  /// The iteration of the WantLease without an answer.
  const std::optional<Iteration>& asked() const { return asked_; }

 private:
  Iteration next_;  // first iteration without a lease
  std::optional<Iteration> asked_;
  bool no_data_ = false;
  Fifo<msg::Lease> leases_;
  std::int64_t position_ = 0;  // in the front lease
};

}  // namespace leeway
