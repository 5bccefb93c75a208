#include "sim/checkers/clocks.hpp"

#include <algorithm>

namespace leeway::sim {

ClockChecker::Entry& ClockChecker::entry_of(Shard& shard, WorkerId worker) {
  if (shard.workers.size() <= worker.value()) shard.workers.resize(worker.value() + 1);
  return shard.workers[worker.value()];
}

void ClockChecker::leave(Shard& shard, Entry& entry) {
  if (!entry.live) return;
  entry.live = false;
  const auto here = shard.live_at.find(entry.clock);
  if (--here->second == 0) shard.live_at.erase(here);
}

void ClockChecker::move(Address actor, Shard& shard, WorkerId worker, std::int64_t clock) {
  Entry& entry = entry_of(shard, worker);
  if (clock < entry.clock)
    violated({actor, address_of(worker)}, "the clock went from ", entry.clock, " to ", clock);
  leave(shard, entry);
  entry = {clock, true};
  ++shard.live_at[clock];
}

void ClockChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  const bool admitted = event.kind == Event::Kind::admitted;
  const bool moved = event.kind == Event::Kind::clock_moved;
  if (!admitted && !moved && event.kind != Event::Kind::removed) return;
  Shard& shard = shards_[actor];
  if (admitted) move(actor, shard, event.worker, event.iteration.value());
  if (moved) move(actor, shard, event.worker, event.value);
  if (event.kind == Event::Kind::removed) leave(shard, entry_of(shard, event.worker));
  if (shard.live_at.empty()) return;  // over nobody it keeps its last value
  const std::int64_t least = shard.live_at.begin()->first;
  if (least < shard.min_clock)
    violated({actor, address_of(event.worker)}, "min_clock went from ", shard.min_clock, " to ",
             least);
  shard.min_clock = least;
}

std::vector<WorkerId> ClockChecker::awaited(Address shard, WorkerId worker) const {
  if (!job_ || !job_->stages->piped() || job_->stages->asynchronous()) return {};
  const Stages& stages = *job_->stages;
  std::vector<WorkerId> awaited;
  for (const std::uint32_t group : stages.share_of(worker).at[shard.index].shard_buckets)
    for (const std::uint32_t stage : stages.owners(ShardId(shard.index), group)) {
      const WorkerId owner = stages.worker(stages.lead_of(worker), stage);
      if (owner != worker && std::find(awaited.begin(), awaited.end(), owner) == awaited.end())
        awaited.push_back(owner);
    }
  return awaited;
}

std::int64_t ClockChecker::common_clock(Address shard, WorkerId worker) {
  Shard& book = shards_[shard];
  std::int64_t least = entry_of(book, worker).clock;
  for (const WorkerId other : awaited(shard, worker))
    least = std::min(least, entry_of(book, other).clock);
  return least;
}

}  // namespace leeway::sim
