// The scheduler's data: leases, clocks, rounds that are closed early, and when to evaluate
// (docs/staleness.md, "Data" and "Rounds that do not wait").
#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/scheduler/scheduler.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

}  // namespace

void Scheduler::lease(WorkerId lead, const msg::WantLease& want, Outbox& out) {
  const auto& member = members_.at(lead);
  if (member.state != State::running) return;
  // It has leases for all before that, or was started there.
  if (want.next > farthest(member))
    return refuse_malformed(address_of(lead), want.next,
                            concat("want lease: no lease has come near iteration ", want.next),
                            out);
  confirm(lead, want.clock, out);
  measured(lead, want, out);
  waiting_.erase(lead);
  if (phase_ != Phase::training) return;
  const auto lease = leases_.grant(lead, want.next, taking_part());
  if (!lease && leases_.may_come_back(lead)) {
    // What it has measured counts once.
    waiting_.emplace(lead, msg::WantLease{.next = want.next, .clock = want.clock});
    return;
  }
  if (!lease) {
    if (!planted(Mutant::no_data_not_sent)) to_worker(lead, msg::NoData{want.next}, out);
    return;
  }
  out.emit({.kind = Event::Kind::lease_granted,
            .worker = lead,
            .iteration = lease->first_iteration,
            .value = lease->begin,
            .value2 = lease->end,
            .epoch = lease->epoch});
  to_worker(lead, *lease, out);
  start_snapshot_if_due(out);
}

void Scheduler::measured(WorkerId lead, const msg::WantLease& want, Outbox& out) {
  // No run counts or times what does not fit; if a message does, it counts as much.
  const auto samples =
      static_cast<std::int64_t>(std::min<std::uint64_t>(want.samples, kMostCounted));
  balance_->measured(lead, {want.iterations, samples, want.computed.ns});
  if (!bound_) return;
  auto& time = interval_[lead];
  time.iterations = std::min(time.iterations + want.iterations, kMostCounted);
  time.waited_us = std::min(time.waited_us + want.waited.ns / 1000, kMostCounted);
  time.computed_us = std::min(time.computed_us + want.computed.ns / 1000, kMostCounted);
  adapt(out);
}

void Scheduler::adapt(Outbox& out) {
  std::vector<WorkerTime> times;
  Clock largest;
  for (const WorkerId lead : members_in({State::running})) {
    const auto time = interval_.find(lead);
    if (time == interval_.end() || time->second.iterations == 0) return;
    times.push_back(time->second);
    largest = std::max(largest, members_.at(lead).clock);
  }
  interval_.clear();
  const std::int64_t before = bound_->bound();
  if (const std::int64_t now = bound_->next(times); now != before)
    to_shards(msg::Bound{Iteration(largest.value()), static_cast<std::uint32_t>(now)}, out);
}

void Scheduler::confirm(WorkerId lead, Clock clock, Outbox& out) {
  auto& member = members_.at(lead);
  // A worker may say any clock; none is beyond all leases.
  clock = std::min(clock, Clock(farthest(member).value()));
  member.clock = std::max(member.clock, clock);
  for (const auto& range : leases_.confirm(lead, clock)) emit_trained(lead, range, out);
}

void Scheduler::data_came_back(Outbox& out) {
  if (phase_ != Phase::training) return;
  for (const auto& [lead, want] : std::exchange(waiting_, {})) lease(lead, want, out);
  if (!leases_.anything_to_lease()) return;
  for (const WorkerId lead : members_in({State::idle}))
    if (!members_.at(lead).leaving()) admit(lead, out);
}

void Scheduler::emit_trained(WorkerId lead, const SampleRange& range, Outbox& out) {
  out.emit({.kind = Event::Kind::trained,
            .worker = lead,
            .value = range.begin,
            .value2 = range.end,
            .epoch = range.epoch});
}

void Scheduler::emit_returned(WorkerId lead, const SampleRange& range, Outbox& out) {
  out.emit({.kind = Event::Kind::lease_returned,
            .worker = lead,
            .value = range.begin,
            .value2 = range.end,
            .epoch = range.epoch});
}

/// What shard 0 found is made known to all shards, and to those who came too late.
void Scheduler::close_round(const msg::RoundClosed& closed, Outbox& out) {
  // Of an older view: shard 0 has been told of the newer one since, and decides again.
  if (closed.view != view_ || phase_ == Phase::gathering || phase_ == Phase::ended) return;
  if (!leases_.suffice(closed.round, closed.contributors, members_in({State::running}))) return;
  for (const auto& late : leases_.close(closed.round, closed.contributors)) {
    ++dropped_pushes_;
    emit_returned(late.worker, late.samples, out);
  }
  to_shards(msg::CloseRound{closed.round, closed.contributors, view_}, out);
  const Iteration next = closed.round + 1;
  for (auto& [lead, member] : members_) {
    if (std::binary_search(closed.contributors.begin(), closed.contributors.end(), lead)) continue;
    if (member.state == State::admitting) member.start = std::max(member.start, next);
    if (member.state != State::running || member.start >= next) continue;
    member.late = next;
    to_worker(lead, msg::PushDropped{next}, out);
  }
  data_came_back(out);
}

// ---- evaluation ----

void Scheduler::start_snapshot_if_due(Outbox& out) {
  if (job_->plan.evaluate_every <= 0 ||
      static_cast<double>(leases_.samples_leased()) < next_evaluation_)
    return;
  const double step = job_->plan.evaluate_every * static_cast<double>(job_->data.train->size());
  next_evaluation_ = (std::floor(static_cast<double>(leases_.samples_leased()) / step) + 1) * step;
  if (snapshot_ || !leases_.anything_to_lease())
    return;  // one in flight; and the end is evaluated anyway
  snapshot_ = SnapshotInFlight{.id = next_snapshot_++};
  // No lease reaches the horizon, so no worker can have passed it; the shards' votes make sure.
  propose_snapshot(leases_.horizon(), out);
}

void Scheduler::propose_snapshot(Iteration iteration, Outbox& out) {
  const bool immediate = job_->consistency->bound(iteration) == kUnbounded;
  snapshot_->iteration = iteration;
  snapshot_->votes_missing = job_->layout->shards();
  snapshot_->largest = {};
  snapshot_->refused = false;
  to_shards(msg::Snapshot{snapshot_->id, iteration, immediate}, out);
}

void Scheduler::voted(const msg::SnapshotVote& vote, Outbox& out) {
  if (!snapshot_ || vote.snapshot != snapshot_->id || vote.iteration != snapshot_->iteration ||
      snapshot_->votes_missing == 0)
    return;
  snapshot_->largest = std::max(snapshot_->largest, vote.largest);
  snapshot_->refused |= vote.largest >= snapshot_->iteration;
  if (--snapshot_->votes_missing == 0 && snapshot_->refused)
    propose_snapshot(std::max(snapshot_->largest + 1, leases_.horizon()), out);
}

}  // namespace leeway
