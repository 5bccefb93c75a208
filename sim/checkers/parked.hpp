#pragma once
// ParkedChecker: property 4, every pull is answered as soon as the rule allows it, or refused.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "sim/checkers/bounds.hpp"

namespace leeway::sim {

/// The host detects deadlocks, because then no observer is called.
class ParkedChecker final : public Checker {
 public:
  ParkedChecker(std::shared_ptr<ClockChecker> clocks, std::shared_ptr<BoundChecker> bounds)
      : Checker("every pull is answered once the rule allows it, or refused (4)"),
        clocks_(std::move(clocks)),
        bounds_(std::move(bounds)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_ended(Instant, Address actor) override { ended_.insert(actor); }
  void on_restarted(Instant, Address actor) override { ended_.erase(actor); }
  void on_run_ended(const RunTotals& totals) override;

 private:
  using Name = std::tuple<WorkerId, Iteration, Session>;
  struct Shard {
    std::map<Name, std::int64_t> open;  // own_clock of pulls neither answered nor refused
    std::optional<Name> latest;         // the pull in the last message
    std::int64_t min_clock = 0;         // at the last check
    std::uint64_t bounds = 0;           // changes of bounds up to the last check
    std::set<WorkerId> moved;           // since the last check
  };
  void check(Address address, Shard& shard);
  void check(Address address, WorkerId worker, Iteration iteration, std::int64_t own_clock);
  void note_move(Address actor, WorkerId worker);
  void close(Shard& shard, WorkerId worker, Iteration iteration);
  /// Drops all pulls of a worker, whose next session has not begun.
  static void forget(Shard& shard, WorkerId worker);

  std::shared_ptr<ClockChecker> clocks_;
  std::shared_ptr<BoundChecker> bounds_;
  std::map<Address, Shard> shards_;
  std::map<WorkerId, JoinNonce> joined_;  // the latest Join
  std::set<Address> ended_;               // dead or stopped workers
};

}  // namespace leeway::sim
