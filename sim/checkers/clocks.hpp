#pragma once
// ClockChecker: property 2, clocks and min_clock never decrease.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Other checkers read its records of the clocks at every shard, so it precedes them in the
/// catalogue.
class ClockChecker final : public Checker {
 public:
  /// Without a job, no two workers share a block.
  explicit ClockChecker(std::shared_ptr<const Job> job = nullptr)
      : Checker("clocks and min_clock never decrease (2)"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;

  struct Entry {
    std::int64_t clock = 0;  // the largest that the worker has had here, or in the checkpoint
    bool live = false;
  };
  struct Shard {
    std::vector<Entry> workers;                     // by index, up to the last one admitted
    std::map<std::int64_t, std::uint32_t> live_at;  // number of live workers by clock
    std::int64_t min_clock = 0;
    /// Null if the worker does not take part.
    const Entry* live(WorkerId worker) const {
      const bool known = worker.value() < workers.size() && workers[worker.value()].live;
      return known ? &workers[worker.value()] : nullptr;
    }
  };
  const Shard& at(Address shard) { return shard_of(shard); }
  /// A pull of the worker waits for the pushes of these other workers: the stages of its pipeline
  /// that share a block of the shard with it. Empty if the pipeline is never flushed.
  std::vector<WorkerId> awaited(Address shard, WorkerId worker) const;
  /// The least clock of the worker and of the workers in awaited().
  std::int64_t common_clock(Address shard, WorkerId worker);

 private:
  void move(Address actor, WorkerId worker, std::int64_t clock);
  void check_min_clock(Address actor, Shard& shard, WorkerId mover) const;
  static void leave(Shard& shard, Entry& entry);
  Shard& shard_of(Address address);
  Entry& entry_of(Shard& shard, WorkerId worker) const;

  std::shared_ptr<const Job> job_;
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
