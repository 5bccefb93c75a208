#include "sim/checkers/clocks.hpp"

#include <algorithm>

#include "sim/checkers/resumed.hpp"

namespace leeway::sim {

ClockChecker::Shard& ClockChecker::shard_of(Address address) {
  const auto [shard, fresh] = shards_.try_emplace(address);
  if (fresh && job_) shard->second.min_clock = resumed_min_clock(*job_);
  return shard->second;
}

ClockChecker::Entry& ClockChecker::entry_of(Shard& shard, WorkerId worker) const {
  while (shard.workers.size() <= worker.value()) {
    const WorkerId next(static_cast<std::uint32_t>(shard.workers.size()));
    const std::int64_t clock = job_ ? resumed_clock(*job_, job_->stages->pipeline_of(next)) : 0;
    shard.workers.push_back({.clock = clock});
  }
  return shard.workers[worker.value()];
}

void ClockChecker::leave(Shard& shard, Entry& entry) {
  if (!entry.live) return;
  entry.live = false;
  const auto here = shard.live_at.find(entry.clock);
  if (--here->second == 0) shard.live_at.erase(here);
}

void ClockChecker::move(Address actor, WorkerId worker, std::int64_t clock) {
  Shard& shard = shard_of(actor);
  Entry& entry = entry_of(shard, worker);
  if (clock < entry.clock)
    violated({actor, address_of(worker)}, "the clock went from ", entry.clock, " to ", clock);
  leave(shard, entry);
  entry = {clock, true};
  ++shard.live_at[clock];
  check_min_clock(actor, shard, worker);
}

void ClockChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  if (const auto* moved = event.as<event::ClockMoved>()) {
    move(actor, moved->worker, moved->clock.value());
  } else if (const auto* admitted = event.as<event::Admitted>()) {
    move(actor, admitted->worker, admitted->iteration.value());
  } else if (const auto* removed = event.as<event::Removed>()) {
    Shard& shard = shard_of(actor);
    leave(shard, entry_of(shard, removed->worker));
    check_min_clock(actor, shard, removed->worker);
  }
}

void ClockChecker::check_min_clock(Address actor, Shard& shard, WorkerId mover) const {
  if (shard.live_at.empty()) return;  // with no live worker, min_clock keeps its last value
  const std::int64_t least = shard.live_at.begin()->first;
  if (least < shard.min_clock)
    violated({actor, address_of(mover)}, "min_clock went from ", shard.min_clock, " to ", least);
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
  Shard& book = shard_of(shard);
  std::int64_t least = entry_of(book, worker).clock;
  for (const WorkerId other : awaited(shard, worker))
    least = std::min(least, entry_of(book, other).clock);
  return least;
}

}  // namespace leeway::sim
