// The shard's side of membership, cuts and reports.
#include <algorithm>

#include "actors/shard/shard.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"

namespace leeway {

bool Shard::stale(View view, Outbox& out) {
  if (view < view_) {
    refuse(kScheduler, {}, msg::Refused::Reason::stale_view, {},
           concat("view ", view, " is older than ", view_), out);
    return true;
  }
  view_ = view;
  return false;
}

void Shard::handle(const msg::Admit& admit, Outbox& out) {
  if (stale(admit.view, out)) return;
  if (share_of(admit.worker).parts.empty())
    return refuse_malformed(kScheduler, admit.iteration,
                            concat("admit: worker ", admit.worker, " has no blocks here"), out);
  const Clock at = clocks_.admit(admit.worker, admit.incarnation, admit.iteration);
  out.emit(
      {.kind = Event::Kind::admitted, .worker = admit.worker, .iteration = Iteration(at.value())});
  out.send(kScheduler,
           encode({.body = msg::Admitted{admit.worker, Iteration(at.value()), admit.view}}));
  clocks_changed(admit.worker, out);
}

void Shard::handle(const msg::Raise& raise, Outbox& out) {
  if (stale(raise.view, out)) return;
  const auto* participant = clocks_.find(raise.worker);
  if (participant && participant->buckets_accepted > 0)
    return refuse_malformed(kScheduler, raise.iteration,
                            concat("raise: worker ", raise.worker, " has begun to push"), out);
  clocks_.raise(raise.worker, raise.iteration);
  if (participant)
    out.emit({.kind = Event::Kind::clock_moved,
              .worker = raise.worker,
              .value = participant->clock.value()});
  clocks_changed(raise.worker, out);
}

void Shard::handle(const msg::Fence& fence, Outbox& out) {
  if (stale(fence.view, out)) return;
  clocks_.fence(fence.worker);
  const auto* participant = clocks_.find(fence.worker);
  unpark_if([&](const ParkedPull& parked) {
    if (parked.worker != fence.worker) return false;
    refuse(address_of(fence.worker), participant->incarnation, msg::Refused::Reason::unknown_worker,
           parked.pull.iteration, "evicted", out);
    return true;
  });
  msg::Fenced reply{fence.worker, participant ? participant->clock : Clock(), {}};
  if (participant && job_->consistency->drops_stragglers()) {
    reply.clock = settle(*participant, fence.worker);
  } else if (participant && participant->buckets_accepted > 0) {
    // Under bsp the parts of an unfinished push are still on hold, and are dropped; else they are
    // applied, or will be.
    drop_unfinished(fence.worker, Iteration(participant->clock.value()));
    for (std::uint32_t part = 0; part < participant->parts.size(); ++part)
      if (participant->parts[part] && !job_->consistency->by_rounds())
        reply.applied.push_back(part);
  }
  out.emit({.kind = Event::Kind::fenced,
            .worker = fence.worker,
            .value = reply.clock.value(),
            .value2 = !reply.applied.empty()});
  out.send(kScheduler, encode({.body = reply}));
  release_tied(job_->stages->lead_of(fence.worker), out);
  apply_closed_round(out);  // which may have waited for it
  propose_round(out);
}

void Shard::drop_unfinished(WorkerId worker, Iteration iteration) {
  const auto round = rounds_.find(iteration);
  if (round == rounds_.end()) return;
  std::erase_if(round->second, [&](const Contribution& held) {
    if (held.worker != worker) return false;
    forget_unapplied(held);
    return true;
  });
}

void Shard::handle(const msg::Remove& remove, Outbox& out) {
  if (stale(remove.view, out)) return;
  if (const auto* participant = clocks_.find(remove.worker);
      participant && job_->consistency->drops_stragglers())
    settle(*participant, remove.worker);
  clocks_.remove(remove.worker);
  unpark_if([&](const ParkedPull& parked) { return parked.worker == remove.worker; });
  out.emit({.kind = Event::Kind::removed, .worker = remove.worker});
  release_tied(job_->stages->lead_of(remove.worker), out);
  clocks_changed(remove.worker, out);
}

void Shard::clocks_changed(WorkerId mover, Outbox& out) {
  apply_complete_rounds(out);
  bounds_.forget_below(clocks_.min_clock());
  release_parked(mover, out);
  if (snapshot_ && clocks_.min_clock().value() >= snapshot_->iteration.value())
    collect_snapshot(out);
  propose_round(out);
}

void Shard::handle(const msg::Bound& bound, Outbox& out) {
  const std::int64_t least = job_->consistency->bound({});
  const std::int64_t largest = job_->consistency->largest_bound();
  if (least == largest || bound.staleness < least || bound.staleness > largest)
    return refuse_malformed(kScheduler, bound.from,
                            concat("bound: ", bound.staleness, " is not in the range of the plan"),
                            out);
  const Iteration from = bounds_.announce(bound.from, bound.staleness);
  out.emit({.kind = Event::Kind::bound_changed, .iteration = from, .value = bound.staleness});
  release_parked(std::nullopt, out);
}

// ---- consistent cuts ----

void Shard::handle(const msg::Snapshot& snapshot, Outbox& out) {
  if (snapshot.immediate)
    return send_state({.snapshot = snapshot.snapshot, .iteration = snapshot.iteration}, false, out);
  const Iteration largest(std::max<std::int64_t>(clocks_.next_unseen().value() - 1, 0));
  const bool fresh = clocks_.next_unseen() <= snapshot.iteration;
  out.send(kScheduler,
           encode({.body = msg::SnapshotVote{snapshot.snapshot, snapshot.iteration, largest}}));
  // A new proposal takes the place of an older one, whose fork, if any, is dropped.
  if (snapshot_)
    for (std::size_t group = 0; group < groups_.size(); ++group)
      if (snapshot_->forked[group]) {
        groups_[group]->enqueue(ParameterBucket::Unfork{});
        run_bucket(group, out);
      }
  snapshot_.reset();
  if (!fresh) return;
  snapshot_ = SnapshotInProgress{snapshot.snapshot, snapshot.iteration,
                                 std::vector<bool>(groups_.size(), false)};
}

void Shard::collect_snapshot(Outbox& out) {
  msg::SnapshotState state{.snapshot = snapshot_->id, .iteration = snapshot_->iteration};
  snapshot_.reset();
  out.emit({.kind = Event::Kind::snapshot_taken,
            .iteration = state.iteration,
            .value = static_cast<std::int64_t>(state.snapshot)});
  send_state(std::move(state), true, out);
}

/// Sends the weights to the monitor as they are when all that is queued now has been applied: of
/// the forks, or the live ones.
void Shard::send_state(msg::SnapshotState state, bool of_fork, Outbox& out) {
  struct Collection {
    msg::SnapshotState state;
    std::size_t missing;
  };
  auto collection = std::make_shared<Collection>(Collection{std::move(state), groups_.size()});
  for (auto& group : groups_) {
    auto take = [collection, &out](const std::vector<ParameterBucket::BlockState>& states) {
      for (const auto& block : states) collection->state.blocks.push_back(block.describe());
      if (--collection->missing == 0)
        out.send(kMonitor, encode({.body = std::move(collection->state)}));
    };
    if (of_fork) {
      group->enqueue(ParameterBucket::Collect{std::move(take)});
    } else {
      group->enqueue(ParameterBucket::Capture{std::move(take)});
    }
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) run_bucket(group, out);
}

// ---- the end, and reports ----

void Shard::handle(const msg::Finish&, Outbox& out) {
  if (finishing_) return;
  finishing_ = true;
  // Under bsp a round waits for those who stand at it. If all of them have been removed, nobody's
  // clock completes it any more, and what others had pushed for it counts all the same.
  apply_rounds_below(clocks_.max_clock(), out);
  send_when_drained(out);
}

void Shard::send_when_drained(Outbox& out) {
  if (!finishing_ || finished_) return;
  for (const auto& group : groups_)
    if (!group->idle()) return;
  finished_ = true;
  report(out);
  send_state({.final = true}, false, out);
}

void Shard::note_wait(const ParkedPull& parked, WorkerId mover, Instant now) {
  auto& wait = waits_[{parked.worker, mover}];
  wait.worker = parked.worker;
  wait.for_worker = mover;
  wait.time += now - parked.since;
  ++wait.count;
  if (waits_.size() <= limits::kMaxWaits) return;
  // Of thousands of workers nearly everybody waits for nearly everybody: the longer half is kept.
  std::vector<Duration> times;
  for (const auto& [pair, one] : waits_) times.push_back(one.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(waits_, [&](const auto& entry) { return entry.second.time <= *middle; });
}

void Shard::report(Outbox& out) {
  const std::uint64_t events =
      report_.pulls + report_.pushes + report_.refused + malformed() + parked_.size();
  if (events == reported_events_ && !finished_) return;
  reported_events_ = events;
  report_.min_clock = clocks_.min_clock();
  report_.max_clock = clocks_.max_clock();
  report_.max_clock_gap = clocks_.max_clock_gap();
  report_.parked_now = static_cast<std::uint32_t>(parked_.size());
  report_.malformed = malformed();
  report_.waits.clear();
  for (const auto& [pair, wait] : waits_) report_.waits.push_back(wait);
  out.send(kMonitor, encode({.body = report_}));
}

void Shard::refuse(Address to, Incarnation incarnation, msg::Refused::Reason reason,
                   Iteration iteration, std::string text, Outbox& out) {
  ++report_.refused;
  out.emit({.kind = Event::Kind::refused,
            .worker = WorkerId(to.index),
            .iteration = iteration,
            .value = static_cast<std::int64_t>(reason)});
  out.send(to, encode({.incarnation = incarnation,
                       .body = msg::Refused{reason, std::move(text), iteration}}));
}

}  // namespace leeway
