#include "actors/shard/snapshots.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "actors/shard/store_work.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"

namespace leeway {

namespace {

Iteration least_of(const std::vector<Iteration>& iterations) {
  return iterations.empty() ? Iteration() : *std::min_element(iterations.begin(), iterations.end());
}

}  // namespace

Status Snapshots::handle(const msg::Snapshot& order, Outbox& out) {
  if (order.iterations.size() != job_->stages->pipelines())
    return Error{concat(order.iterations.size(), " iterations, for ", job_->stages->pipelines(),
                        " pipelines")};
  if (order.checkpoint > 0 && !job_->checkpoints)
    return Error{concat("checkpoint ", order.checkpoint, ", in a run without checkpoints")};
  if (order.immediate) {
    take({.state = {.snapshot = order.snapshot, .iteration = least_of(order.iterations)},
          .evaluate = order.evaluate,
          .checkpoint = order.checkpoint,
          .residuals = workers_of(residuals_)},
         false, out);
    return {};
  }
  drop_pending(out);
  Pending proposed{
      order, order.iterations, {}, std::vector<bool>(buckets_.size(), false), residuals_};
  bool passed = false;
  for (const auto& [worker, participant] : clocks_.participants()) {
    const Iteration end = proposed.ends[pipeline_of(worker)];
    passed |= participant.live && participant.next_unseen > end;
    if (participant.clock.value() < end.value()) proposed.behind.push_back(worker);
  }
  scheduler_.send(msg::SnapshotVote{order.snapshot, !passed}, out);
  if (passed) return {};
  pending_ = std::move(proposed);
  collect_complete(out);
  return {};
}

void Snapshots::admitted(WorkerId worker, Iteration iteration) {
  if (!pending_) return;
  Iteration& end = pending_->ends[pipeline_of(worker)];
  end = std::min(end, iteration);
}

void Snapshots::accepted(const Contribution& push) {
  // A push without samples only assigns.
  if (job_->push_codecs && push.samples > 0 && !push.blocks.empty())
    note_residual(push, std::ranges::any_of(push.blocks, is_encoded));
}

void Snapshots::dropped(const Contribution& push) {
  if (job_->push_codecs && !push.blocks.empty()) note_residual(push, true);
}

void Snapshots::note_residual(const Contribution& push, bool has_residual) {
  const auto note = [&](Residuals& residuals) {
    if (has_residual)
      residuals.emplace(push.worker, push.bucket);
    else
      residuals.erase({push.worker, push.bucket});
  };
  note(residuals_);
  if (pending_ && push.iteration < pending_->ends[pipeline_of(push.worker)])
    note(pending_->residuals);
}

std::vector<WorkerId> Snapshots::workers_of(const Residuals& residuals) {
  std::vector<WorkerId> workers;
  if (planted(Mutant::missing_residuals_not_reported)) return workers;
  for (const auto& [worker, bucket] : residuals)
    if (workers.empty() || workers.back() != worker) workers.push_back(worker);
  return workers;
}

std::vector<msg::ShardState::Residual> Snapshots::save_residuals() const {
  std::vector<msg::ShardState::Residual> all;
  for (const auto& [worker, bucket] : residuals_) all.push_back({worker, bucket});
  return all;
}

void Snapshots::restore_residuals(const std::vector<msg::ShardState::Residual>& residuals) {
  residuals_.clear();
  for (const auto& one : residuals) residuals_.emplace(one.worker, one.bucket);
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

bool Snapshots::fork_before(const Contribution& push) {
  if (!pending_) return false;
  const bool beyond = push.iteration >= pending_->ends[pipeline_of(push.worker)];
  const std::uint32_t bucket = push.shard_bucket;
  if (beyond && !pending_->forked[bucket]) {
    buckets_.enqueue(bucket, ParameterBucket::Fork{});
    pending_->forked[bucket] = true;
  }
  return pending_->forked[bucket] && !beyond && !planted(Mutant::straggling_push_not_in_snapshot);
}

void Snapshots::collect_complete(Outbox& out) {
  if (!pending_) return;
  const auto is_behind = [&](WorkerId worker) {
    const auto& participant = *clocks_.find(worker);
    return participant.live &&
           participant.clock.value() < pending_->ends[pipeline_of(worker)].value();
  };
  auto& behind = pending_->behind;
  while (!behind.empty() && !is_behind(behind.back())) behind.pop_back();
  if (!behind.empty()) return;
  const auto pending = std::exchange(pending_, std::nullopt);
  const std::uint64_t snapshot = pending->order.snapshot;
  const Iteration iteration = least_of(pending->ends);
  out.emit(event::SnapshotTaken{iteration, snapshot});
  scheduler_.send(msg::SnapshotTaken{snapshot}, out);
  take({.state = {.snapshot = snapshot, .iteration = iteration},
        .evaluate = pending->order.evaluate,
        .checkpoint = pending->order.checkpoint,
        .residuals = workers_of(pending->residuals)},
       true, out);
}

/// Collects the forks, or the live state as it is when everything that is queued now has been
/// applied.
void Snapshots::take(Collection collection, bool of_forks, Outbox& out) {
  collection.missing = buckets_.size();
  const auto shared = std::make_shared<Collection>(std::move(collection));
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    // A role has the same Outbox all its life.
    auto collect = [this, shared, &out](const std::vector<BlockState>& states) {
      for (const BlockState& block : states) {
        if (shared->evaluate) shared->state.blocks.push_back(block.describe());
        if (shared->checkpoint > 0) shared->blocks.push_back(block);
      }
      if (--shared->missing == 0) use(*shared, out);
    };
    if (of_forks) {
      buckets_.enqueue(bucket, ParameterBucket::Collect{std::move(collect)});
    } else {
      buckets_.enqueue(bucket, ParameterBucket::Capture{std::move(collect)});
    }
  }
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) buckets_.run(bucket, out);
}

void Snapshots::use(Collection& collection, Outbox& out) {
  const Iteration iteration = collection.state.iteration;
  if (collection.evaluate) monitor_.send(std::move(collection.state), out);
  if (collection.checkpoint > 0)
    out.compute(std::make_shared<StoreWork>(job_, shard_, collection.checkpoint, iteration,
                                            std::move(collection.residuals),
                                            std::move(collection.blocks)));
}

}  // namespace leeway
