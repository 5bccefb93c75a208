#pragma once
// ParkedChecker: property 4, every pull is answered as soon as the rule lets it through, or its
// worker is told why not.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "sim/checkers/bounds.hpp"

namespace leeway::sim {

/// That all wait for each other is for the host to see: then there is nothing more to observe.
class ParkedChecker final : public Checker {
 public:
  ParkedChecker(std::shared_ptr<ClockChecker> clocks, std::shared_ptr<BoundChecker> bounds)
      : Checker("every pull is answered once it may be, or its worker is told why not (4)"),
        clocks_(std::move(clocks)),
        bounds_(std::move(bounds)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_ended(Instant, Address actor) override { ended_.insert(actor); }
  void on_restarted(Instant, Address actor) override { ended_.erase(actor); }
  void on_run_ended(const RunTotals& totals) override;

 private:
  using Name = std::tuple<WorkerId, Iteration, Incarnation>;
  struct Shard {
    std::map<Name, std::int64_t> open;  // pulls neither answered nor refused; with own_clock
    std::optional<Name> latest;         // came with the last message
    std::int64_t min_clock = 0;         // when last looked at
    std::uint64_t bounds = 0;           // changes of bounds, then
    std::set<WorkerId> moved;           // since then
  };
  void look(Address address, Shard& shard);
  void look(Address address, WorkerId worker, Iteration iteration, std::int64_t own_clock);
  void close(Shard& shard, WorkerId worker, Iteration iteration);
  /// The worker waits for nothing that lives before `incarnation` asked for.
  void forget(WorkerId worker, Incarnation incarnation);

  std::shared_ptr<ClockChecker> clocks_;
  std::shared_ptr<BoundChecker> bounds_;
  std::map<Address, Shard> shards_;
  std::set<Address> ended_;  // dead, or stopped: they wait for nothing
};

}  // namespace leeway::sim
