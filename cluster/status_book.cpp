#include "cluster/status_book.hpp"

#include <algorithm>

#include "core/this_host.hpp"

namespace leeway {

void StatusBook::on_event(Address actor, const Event& event) {
  if (const auto* computed = event.as<event::StageComputed>()) {
    std::lock_guard lock(mutex_);
    did_[computed->worker] = *computed;
  } else if (const auto* written = event.as<event::CheckpointWritten>()) {
    std::lock_guard lock(mutex_);
    checkpoint_ = *written;
    checkpoint_at_ = steady_ns();
  } else if (actor.kind == RoleKind::shard) {
    std::lock_guard lock(mutex_);
    on_shard_event(shards_[actor.index], event);
  }
}

void StatusBook::on_shard_event(Shard& shard, const Event& event) {
  if (const auto* moved = event.as<event::ClockMoved>()) {
    shard.clocks[moved->worker] = moved->clock.value();
  } else if (const auto* admitted = event.as<event::Admitted>()) {
    shard.clocks[admitted->worker] = admitted->iteration.value();
  } else if (const auto* parked = event.as<event::PullParked>()) {
    shard.parked[parked->worker] = parked->iteration.value();
  } else if (const auto* answered = event.as<event::PullAnswered>()) {
    shard.parked.erase(answered->worker);
  } else if (const auto* removed = event.as<event::Removed>()) {
    shard.clocks.erase(removed->worker);
    shard.parked.erase(removed->worker);
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
  if (checkpoint_.number > 0)
    status.checkpoint = {checkpoint_.number, checkpoint_.samples,
                         static_cast<double>(steady_ns() - checkpoint_at_) * 1e-9};
  for (const auto& [worker, clock] : clocks) status.clocks.push_back({worker, clock});
  for (const auto& [worker, did] : did_)
    status.did.push_back({worker, did.operation, did.iteration, did.micro_batch});
}

}  // namespace leeway
