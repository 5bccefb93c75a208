#include "actors/scheduler/departures.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {

bool Departures::idle(WorkerId worker, const msg::Idle& sent, Outbox& out) {
  const WorkerId lead = stages_->lead_of(worker);
  auto& member = roster_.at(lead);
  if (member.state == State::idle) {
    const bool has_reached = sent.barrier > member.barrier;
    member.barrier = std::max(member.barrier, sent.barrier);
    return has_reached;
  }
  if (member.state != State::running) return false;
  auto& stage = roster_.stage_of(worker);
  stage.idle = true;
  stage.clock = sent.clock;
  if (!member.all_idle()) return false;
  leases_.confirm(lead, member.least_clock(), out);
  roster_.enter(lead, State::idle);
  member.barrier = sent.barrier;
  // It may hold leases that it has not looked at: a share of a round that began after its NoData,
  // or the answer to a request that was sent twice.
  leases_.take_back(lead, {}, out);
  if (!planted(Mutant::waits_for_the_idle)) remove(lead, out);
  return true;
}

bool Departures::leave(WorkerId worker, Outbox& out) {
  const WorkerId lead = stages_->lead_of(worker);
  auto& member = roster_.at(lead);
  for (auto& stage : member.stages)
    if (stage.nonce != JoinNonce()) stage.leaves = launch_of(stage.nonce);
  if (member.state == State::gone || member.state == State::stopped) {
    for (const WorkerId one : roster_.workers_of(lead))
      if (std::exchange(roster_.stage_of(one).joined, false)) mailer_.stop(one, out);
    emit_left(lead, out);
    return false;
  }
  if (member.state == State::fencing) return true;
  for (const WorkerId one : roster_.workers_of(lead)) mailer_.stop(one, out);
  return true;
}

Departures::AfterStopped Departures::stopped(WorkerId worker, Session session,
                                             const msg::Stopped& sent, Outbox& out) {
  const WorkerId lead = stages_->lead_of(worker);
  auto& member = roster_.at(lead);
  const bool leaving = member.leaving();
  if (!run_.is_over() && !leaving) return AfterStopped::waits;
  // The Start was lost with a connection, and the Stop was not. Other workers may have begun.
  if (stages_->has_several() && member.state == State::running && session < member.session)
    return AfterStopped::start_lost;
  auto& stage = roster_.stage_of(worker);
  stage.stopped = true;
  stage.clock = sent.clock;
  if (!member.all_stopped()) return AfterStopped::waits;
  if (run_.is_over()) {
    leases_.confirm(lead, member.least_clock(), out);
    // A run that continues from the last checkpoint leases the rest.
    leases_.take_back(lead, stopped_apart(member), out);
    roster_.enter(lead, State::stopped);
    remove(lead, out);
    if (leaving) emit_left(lead, out);
    return AfterStopped::stopped;
  }
  // All its pushes are acknowledged, so it needs no fence.
  member.end_reason = "it was asked to leave";
  member.ended_worker = worker;
  member.rejoined = false;
  member.took_part = member.has_started();
  part_with(lead, stopped_apart(member), out);
  return AfterStopped::left;
}

void Departures::send_again(WorkerId worker, Outbox& out) const {
  const auto& member = roster_.member_of(worker);
  const auto& stage = roster_.stage_of(worker);
  const bool to_stop = run_.phase() == RunControl::Phase::stopping || stage.leaving();
  const bool may_wait = member.state != State::gone || stage.joined;
  if (to_stop && member.state != State::stopped && may_wait &&
      !planted(Mutant::stop_not_sent_again))
    mailer_.stop(worker, out);
}

PartialIterations Departures::stopped_apart(const Member& member) const {
  PartialIterations partial;
  for (std::uint32_t stage = 0; stage < member.stages.size(); ++stage) {
    const auto& share = stages_->share(stage);
    for (const ShardId shard : share.shards)
      partial.add(stage, shard, member.stages[stage].clock, {},
                  static_cast<std::uint32_t>(share.at[shard.value()].buckets.size()));
  }
  return partial;
}

void Departures::part_with(WorkerId lead, const PartialIterations& partial, Outbox& out) {
  auto& member = roster_.at(lead);
  const Clock whole = partial.whole();
  // Before its Start it has pushed nothing, even if shards admitted it at different clocks.
  const std::int64_t count = member.took_part ? partial.count() : 0;
  if (count > 0)
    out.emit(event::PartialPush{
        .worker = lead, .iteration = Iteration(whole.value()), .iterations = count});
  run_.count_partial_pushes(static_cast<std::uint64_t>(count));
  leases_.confirm(lead, whole, out);
  const std::uint64_t returned = leases_.take_back(lead, partial, out);
  roster_.enter(lead, State::gone);
  for (auto& stage : member.stages) stage.joined = false;
  leases_.forget_pace(lead);
  if (member.leaving()) emit_left(lead, out);
  if (!planted(Mutant::waits_for_the_evicted)) remove(lead, out);
  out.send(kMonitor, encode({.session = member.session,
                             .body = msg::Evicted{.worker = lead,
                                                  .reason = member.end_reason,
                                                  .returned_samples = returned,
                                                  .partial = count > 0,
                                                  .ended = member.ended_worker,
                                                  .rejoined = member.rejoined}}));
}

void Departures::remove(WorkerId lead, Outbox& out) {
  bound_.forget(lead);
  const View view = roster_.next_view();
  mailer_.for_each_stage(
      lead,
      [&](WorkerId worker) {
        return msg::Remove{worker, view};
      },
      out);
}

void Departures::emit_left(WorkerId lead, Outbox& out) const {
  for (const WorkerId worker : roster_.workers_of(lead)) out.emit(event::Left{worker});
}

}  // namespace leeway
