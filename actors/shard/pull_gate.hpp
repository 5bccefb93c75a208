#pragma once
// PullGate: the staleness rule at one shard, and the pulls that it does not permit yet.
#include <optional>
#include <vector>

#include "actors/shard/bound_table.hpp"
#include "actors/shard/clock_table.hpp"
#include "actors/shard/tied_blocks.hpp"
#include "actors/shard/wait_ledger.hpp"
#include "messages/worker_shard.hpp"

namespace leeway {

struct ParkedPull {
  WorkerId worker;
  msg::Pull pull;
  Instant since;
};

class PullGate {
 public:
  /// `bound` holds for all iterations until the scheduler announces another.
  PullGate(std::int64_t bound, const ClockTable& clocks, const TiedBlocks& tied)
      : clocks_(clocks), tied_(tied), bounds_(bound) {}

  /// The staleness rule (may_start) for a worker that has pushed `own_clock` iterations.
  bool is_allowed(WorkerId worker, Iteration iteration, Clock own_clock) const;
  /// A pull for the iteration is answered: from now on its bound stays as it is.
  void answered(Iteration iteration) { bounds_.answered(iteration); }

  /// `repeat`: the pull replaces an earlier one for the same iteration, which was sent before a
  /// link broke. `refused`: the worker has limits::kMaxPullsPerWorker parked pulls.
  enum class Parking : std::uint8_t { parked, repeat, refused };
  Parking park(const ParkedPull& pull);
  /// Removes and returns the pulls that the rule allows now, in order of arrival. `mover`: the
  /// worker whose clock has moved, to which the waiting time is attributed; empty if the bound has
  /// moved.
  std::vector<ParkedPull> release(std::optional<WorkerId> mover, Instant now);
  /// Removes and returns all pulls of a worker.
  std::vector<ParkedPull> withdraw(WorkerId worker);

  /// Applies a new bound; returns the first iteration that it holds for (see BoundTable).
  Iteration announce(Iteration from, std::int64_t bound) { return bounds_.announce(from, bound); }
  /// Discards the bounds of iterations that every worker has passed.
  void forget_passed_bounds() { bounds_.forget_below(clocks_.min_clock()); }

  msg::PullGateState save() const;
  void restore(const msg::PullGateState& state);
  BoundTable& bounds() { return bounds_; }
  const BoundTable& bounds() const { return bounds_; }

  std::size_t parked() const { return parked_.size(); }
  const WaitLedger& waits() const { return waits_; }
  WaitLedger& waits() { return waits_; }

 private:
  bool is_allowed(const ParkedPull& parked) const {
    return is_allowed(parked.worker, parked.pull.iteration, parked.pull.own_clock);
  }
  void add(const ParkedPull& pull);
  /// Removes and returns the pulls for which `leaves(pull)`.
  template <class Leaves>
  std::vector<ParkedPull> take_if(Leaves leaves);
  std::uint32_t parked_of(WorkerId worker) const {
    return worker.value() < parked_of_.size() ? parked_of_[worker.value()] : 0;
  }
  bool has_parked_with_siblings(WorkerId worker) const;

  const ClockTable& clocks_;
  const TiedBlocks& tied_;
  BoundTable bounds_;
  std::vector<ParkedPull> parked_;        // in order of arrival
  std::vector<std::uint32_t> parked_of_;  // number of them, by worker
  Clock swept_at_;                        // min_clock when parked_ was last looked through
  WaitLedger waits_;
};

}  // namespace leeway
