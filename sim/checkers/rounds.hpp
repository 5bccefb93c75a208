#pragma once
// RoundChecker: property 3 for rounds that are closed early: every shard sums the same pushes.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/order_numbers.hpp"

namespace leeway::sim {

/// Of each closed round it checks:
/// - all shards get the same contributors, and the same scale;
/// - the scaled weights of the contributors' pushes add up to the unscaled ones, or to 1 if these
///   are more; with batches by speed, to any sum between that and 1;
/// - a shard applies all buckets of their pushes and no others, and omits only the whole pushes of
///   fenced workers;
/// - it drops no more pushes than the policy allows, and none of a partial iteration;
/// - a worker begins no iteration before the one that PushDropped names.
class RoundChecker final : public Checker {
 public:
  explicit RoundChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_run_ended(const RunTotals& totals) override;

 private:
  struct Shard {
    Iteration round{-1};                           // the last closed round
    std::map<WorkerId, std::size_t> contributors;  // to `round`; number of buckets applied
    std::uint32_t dropped = 0;
    std::map<WorkerId, bool> fenced;  // true: admitted again since `round` was closed
  };
  /// The contents of the order to close a round.
  struct Closed {
    std::vector<WorkerId> contributors;
    double scale = 1;
  };
  /// A worker's samples in a round, and all of the round.
  struct Share {
    std::int64_t samples = 0;
    std::int64_t of = 1;
  };
  void check_applied(Address actor, const event::BucketApplied& applied);
  void check_dropped(Address actor, const event::PushDropped& dropped);
  void check_started(Address actor, const event::StepStarted& started) const;
  void check_partial(const event::PartialPush& partial) const;
  void check_scale(Address shard, Iteration round, const Closed& closed) const;
  void check_last_round(Address address, const Shard& shard) const;

  std::shared_ptr<const Job> job_;
  OrderNumbers orders_;
  bool drops_;  // false: no round is closed early
  std::size_t most_dropped_;
  std::map<Iteration, Closed> rounds_;                     // the latest
  std::map<Iteration, std::map<WorkerId, Share>> shares_;  // of these and later rounds
  std::map<Address, Shard> shards_;
  std::map<Address, Iteration> next_;  // by worker, the iteration that PushDropped names
};

}  // namespace leeway::sim
