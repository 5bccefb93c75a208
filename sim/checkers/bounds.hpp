#pragma once
// BoundChecker: a moving staleness bound stays in its range, and is fixed for iterations that a
// worker has started.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/job.hpp"
#include "sim/checkers/clocks.hpp"
#include "sim/checkers/order_numbers.hpp"
#include "sim/checkers/resumed.hpp"

namespace leeway::sim {

/// Other checkers read its records of the bounds at every shard, so it precedes them in the
/// catalogue.
class BoundChecker final : public Checker {
 public:
  BoundChecker(std::shared_ptr<const Job> job, std::shared_ptr<ClockChecker> clocks)
      : Checker("the bound of a started iteration is fixed (1)"),
        job_(std::move(job)),
        moves_(job_->consistency->has_moving_bound()),
        first_(resumed_bound(*job_)),
        clocks_(std::move(clocks)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

  std::int64_t at(Address shard, Iteration iteration);
  /// Number of changes of a bound, over all shards.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Shard {
    std::map<Iteration, std::int64_t> bounds;  // from this iteration on
    Iteration beyond;                          // the largest with an answered pull, plus one
    std::optional<std::uint32_t> announced;    // by the scheduler; not in force yet
  };
  void check_change(Address actor, const event::BoundChanged& changed);

  std::shared_ptr<const Job> job_;
  OrderNumbers orders_;
  bool moves_;          // whether bounds may change
  std::int64_t first_;  // until the first change
  std::uint64_t changes_ = 0;
  std::shared_ptr<ClockChecker> clocks_;
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
