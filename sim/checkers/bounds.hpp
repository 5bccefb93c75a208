#pragma once
// BoundChecker: a staleness bound that moves stays in its range, and does not change for iterations
// that somebody was let into.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "actors/job.hpp"
#include "sim/checkers/clocks.hpp"

namespace leeway::sim {

/// Its books, of the bounds that hold at every shard, serve other checkers too: list it before
/// them.
class BoundChecker final : public Checker {
 public:
  BoundChecker(std::shared_ptr<const Job> job, std::shared_ptr<ClockChecker> clocks)
      : Checker("a bound stays as it is for iterations that somebody was let into (1)"),
        job_(std::move(job)),
        moves_(job_->consistency->has_moving_bound()),
        clocks_(std::move(clocks)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

  std::int64_t at(Address shard, Iteration iteration);
  /// How often a bound has changed, at any shard.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Shard {
    std::map<Iteration, std::int64_t> bounds;  // from this iteration on
    Iteration beyond;                          // of all that somebody was let into
    std::optional<std::uint32_t> told;         // a bound that it has not taken in yet
  };

  std::shared_ptr<const Job> job_;
  bool moves_;  // whether bounds may change
  std::uint64_t changes_ = 0;
  std::shared_ptr<ClockChecker> clocks_;
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
