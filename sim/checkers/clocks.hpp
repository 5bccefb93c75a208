#pragma once
// ClockChecker: property 2, clocks and min_clock never decrease.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Its books, of every shard's clocks, serve other checkers too: list it before them.
class ClockChecker final : public Checker {
 public:
  /// Without a job nobody shares a block with another.
  explicit ClockChecker(std::shared_ptr<const Job> job = nullptr)
      : Checker("clocks and min_clock never decrease (2)"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;

  struct Entry {
    std::int64_t clock = 0;  // the largest that the worker ever had here
    bool live = false;
  };
  struct Shard {
    std::vector<Entry> workers;                     // by index; those never admitted may lack
    std::map<std::int64_t, std::uint32_t> live_at;  // how many live workers stand at a clock
    std::int64_t min_clock = 0;
    /// Null for a worker that does not take part.
    const Entry* live(WorkerId worker) const {
      const bool known = worker.value() < workers.size() && workers[worker.value()].live;
      return known ? &workers[worker.value()] : nullptr;
    }
  };
  const Shard& at(Address shard) { return shards_[shard]; }
  /// The workers whose pushes a pull of this one waits for besides its own: the stages of its
  /// pipeline with which it owns a block of the shard, where the pipeline is emptied for each
  /// update.
  std::vector<WorkerId> awaited(Address shard, WorkerId worker) const;
  /// The least of the worker's clock and of theirs.
  std::int64_t common_clock(Address shard, WorkerId worker);

 private:
  void move(Address actor, Shard& shard, WorkerId worker, std::int64_t clock);
  static void leave(Shard& shard, Entry& entry);
  static Entry& entry_of(Shard& shard, WorkerId worker);

  std::shared_ptr<const Job> job_;
  std::map<Address, Shard> shards_;
};

}  // namespace leeway::sim
