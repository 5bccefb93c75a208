#include "actors/shard/snapshots.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/mutant.hpp"
#include "messages/envelope.hpp"

namespace leeway {

void Snapshots::handle(const msg::Snapshot& order, Outbox& out) {
  if (order.immediate)
    return send({.snapshot = order.snapshot, .iteration = order.iteration}, false, out);
  const Iteration unseen = clocks_.next_unseen();
  const Iteration largest(std::max<std::int64_t>(unseen.value() - 1, 0));
  out.send(kScheduler,
           encode({.body = msg::SnapshotVote{order.snapshot, order.iteration, largest}}));
  drop_pending(out);
  if (unseen <= order.iteration)
    pending_ = Pending{order.snapshot, order.iteration, std::vector<bool>(buckets_.size(), false)};
}

void Snapshots::drop_pending(Outbox& out) {
  const auto dropped = std::exchange(pending_, std::nullopt);
  if (!dropped) return;
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (!dropped->forked[bucket]) continue;
    buckets_.enqueue(bucket, ParameterBucket::Unfork{});
    buckets_.run(bucket, out);
  }
}

bool Snapshots::fork_before(std::uint32_t bucket, Iteration iteration) {
  if (!pending_) return false;
  if (iteration >= pending_->iteration && !pending_->forked[bucket]) {
    buckets_.enqueue(bucket, ParameterBucket::Fork{});
    pending_->forked[bucket] = true;
  }
  return pending_->forked[bucket] && iteration < pending_->iteration &&
         !planted(Mutant::straggling_push_not_in_snapshot);
}

void Snapshots::collect_complete(Outbox& out) {
  if (!pending_ || clocks_.min_clock().value() < pending_->iteration.value()) return;
  msg::SnapshotState state{.snapshot = pending_->id, .iteration = pending_->iteration};
  pending_.reset();
  out.emit(event::SnapshotTaken{state.iteration, state.snapshot});
  send(std::move(state), true, out);
}

/// Sends the monitor the weights of the forks, or the live ones, as they are when everything that
/// is queued now has been applied.
void Snapshots::send(msg::SnapshotState state, bool of_forks, Outbox& out) {
  struct Collection {
    msg::SnapshotState state;
    std::uint32_t missing;
  };
  auto collection = std::make_shared<Collection>(Collection{std::move(state), buckets_.size()});
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    // A role has the same Outbox all its life.
    auto take = [collection, &out](const std::vector<BlockState>& states) {
      for (const auto& block : states) collection->state.blocks.push_back(block.describe());
      if (--collection->missing == 0)
        out.send(kMonitor, encode({.body = std::move(collection->state)}));
    };
    if (of_forks) {
      buckets_.enqueue(bucket, ParameterBucket::Collect{std::move(take)});
    } else {
      buckets_.enqueue(bucket, ParameterBucket::Capture{std::move(take)});
    }
  }
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) buckets_.run(bucket, out);
}

}  // namespace leeway
