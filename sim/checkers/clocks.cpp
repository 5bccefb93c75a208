#include "sim/checkers/clocks.hpp"

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

}  // namespace leeway::sim
