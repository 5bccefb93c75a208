#pragma once
// LeaseQueue: the samples that a worker has been leased, iteration by iteration, and what it asks
// for.
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

  std::int64_t samples() const { return end - begin; }
  double weight() const {
    return static_cast<double>(samples()) / static_cast<double>(round_samples);
  }
};

class LeaseQueue {
 public:
  /// Forgets everything: `next` is the first iteration without samples.
  void begin(Iteration next);

  /// Takes in an answer; false for a repeat.
  bool take_in(const msg::Lease& lease);
  bool take_in(const msg::NoData& no_data);
  /// Iterations below `next` are no longer wanted.
  void skip_to(Iteration next);

  /// First iteration without a lease.
  Iteration next() const { return next_; }
  bool leased(Iteration iteration) const { return iteration < next_; }
  /// The scheduler has nothing to lease now.
  bool no_data() const { return no_data_; }
  /// The samples of the next iteration; requires that it is leased.
  LeasedIteration take();

  /// What is to be asked for, so that the answer is here before `started`, the next iteration to
  /// start, is done; nothing while an answer is missing, or there is no data.
  bool wants(Iteration started) const { return !asked_ && !no_data_ && next_ - started <= 1; }
  void ask() { asked_ = next_; }
  /// The WantLease that is not answered yet.
  const std::optional<Iteration>& asked() const { return asked_; }

 private:
  Iteration next_;  // first iteration without a lease
  std::optional<Iteration> asked_;
  bool no_data_ = false;
  Fifo<msg::Lease> leases_;
  std::int64_t position_ = 0;  // in the front lease
};

}  // namespace leeway
