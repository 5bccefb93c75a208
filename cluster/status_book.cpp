#include "cluster/status_book.hpp"

#include <algorithm>

namespace leeway {

void StatusBook::on_event(Address actor, const Event& event) {
  const bool computed = of_stage(event.kind);
  if (actor.kind != RoleKind::shard && !computed) return;
  std::lock_guard lock(mutex_);
  if (computed) {
    did_[event.worker] = {event.kind, event.iteration.value(), event.value};
    return;
  }
  Shard& shard = shards_[actor.index];
  switch (event.kind) {
    case Event::Kind::clock_moved:
      shard.clocks[event.worker] = event.value;
      break;
    case Event::Kind::admitted:
      shard.clocks[event.worker] = event.iteration.value();
      break;
    case Event::Kind::pull_parked:
      shard.parked[event.worker] = event.iteration.value();
      break;
    case Event::Kind::pull_answered:
      shard.parked.erase(event.worker);
      break;
    case Event::Kind::removed:
      shard.clocks.erase(event.worker);
      shard.parked.erase(event.worker);
      break;
    default:
      break;
  }
}

void StatusBook::fill(node::Status& status) const {
  std::lock_guard lock(mutex_);
  std::map<WorkerId, std::int64_t> clocks;
  for (const auto& [index, shard] : shards_) {
    std::int64_t slowest = 0;
    std::vector<std::uint32_t> behind;
    for (const auto& [worker, clock] : shard.clocks) {
      const auto known = clocks.try_emplace(worker, clock).first;
      known->second = std::min(known->second, clock);
      if (behind.empty() || clock < slowest) {
        slowest = clock;
        behind.clear();
      }
      if (clock == slowest) behind.push_back(worker.value());
    }
    for (const auto& [worker, iteration] : shard.parked)
      status.parked.push_back({ShardId(index), worker, iteration, behind});
  }
  for (const auto& [worker, clock] : clocks) status.clocks.push_back({worker, clock});
  for (const auto& [worker, did] : did_)
    status.did.push_back(
        {worker, static_cast<std::uint8_t>(did.kind), did.iteration, did.micro_batch});
}

}  // namespace leeway
