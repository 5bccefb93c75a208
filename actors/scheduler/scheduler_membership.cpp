// The scheduler's membership: joining, admission, idling, leaving (docs/staleness.md, "Who takes
// part").
#include <algorithm>
#include <utility>

#include "actors/scheduler/scheduler.hpp"
#include "core/mutant.hpp"

namespace leeway {

void Scheduler::join(WorkerId worker, Incarnation incarnation, Outbox& out) {
  const WorkerId lead = job_->stages->lead_of(worker);
  auto& member = members_.at(lead);
  auto& stage = stage_of(worker);
  const bool is_new = incarnation > stage.incarnation;
  if (member.state == State::fencing) {
    // It waits until its old life is settled.
    if (is_new && incarnation > stage.comes_back.value_or(Incarnation(0)))
      stage.comes_back = incarnation;
    return;
  }
  if (member.state != State::absent && member.state != State::gone) {
    if (!is_new) return;  // a repeat
    // Only an evicted worker, or one that was started again, begins a new life: the old one is
    // over.
    evict(worker, "a new life of it has begun", out);
    stage.comes_back = incarnation;
    return;
  }
  if (!is_new && stage.joined) return;  // a repeat, of one that waits for other stages
  if (member.state == State::gone && incarnation < stage.incarnation) return;
  const bool over = phase_ == Phase::stopping || phase_ == Phase::ended;
  if (member.state == State::gone && !over && incarnation == stage.incarnation && !stage.leaving())
    // Evicted before it started: it must come back under a new incarnation, which the shards have
    // not fenced.
    return refuse_evicted(worker, out);
  stage.incarnation = incarnation;
  stage.heard = true;
  stage.ended = stage.idle = stage.stopped = false;
  const bool to_stop = over || stage.leaving();
  if (to_stop && member.state == State::gone)  // nobody waits for it
    return to_worker(worker, msg::Stop{}, out);
  stage.joined = true;
  out.watch(address_of(worker));  // of a new life the host has told nothing yet
  if (to_stop) to_worker(worker, msg::Stop{}, out);
  if (!member.complete()) return;
  enter(lead, State::joined);
  if (to_stop || member.leaving()) return;
  if (phase_ == Phase::gathering) return begin_if_gathered(out);
  admit(lead, out);
}

void Scheduler::begin_if_gathered(Outbox& out) {
  if (phase_ != Phase::gathering || count_in({State::absent}) > 0) return;
  const auto joined = members_in({State::joined});
  if (joined.empty()) return;
  phase_ = Phase::training;
  for (const WorkerId lead : joined) admit(lead, out);
}

void Scheduler::admit(WorkerId lead, Outbox& out) {
  auto& member = members_.at(lead);
  enter(lead, State::admitting);
  member.missing = planted(Mutant::started_too_early) ? 1 : pairs_;
  member.start = {};
  member.uneven = false;
  // Where the others are: under bsp beyond the last round cut, else the least clock known.
  Iteration at(member.clock.value());
  if (job_->consistency->by_rounds()) {
    at = std::max(at, leases_.horizon());
  } else {
    std::optional<Clock> least;
    for (const WorkerId other : in_state_[static_cast<std::size_t>(State::running)])
      least = std::min(least.value_or(members_.at(other).clock), members_.at(other).clock);
    if (least) at = std::max(at, Iteration(least->value()));
  }
  member.admitted_by = next_view();
  for (const WorkerId worker : workers_of(lead))
    to_shards_of(worker, msg::Admit{worker, stage_of(worker).incarnation, at, member.admitted_by},
                 out);
}

void Scheduler::admitted(const msg::Admitted& answer, Outbox& out) {
  if (!knows(answer.worker)) return;
  const WorkerId lead = job_->stages->lead_of(answer.worker);
  auto& member = members_.at(lead);
  if (member.state != State::admitting || member.missing == 0) return;
  if (answer.view != member.admitted_by) return;  // of an earlier life
  member.uneven |= member.missing < pairs_ && answer.iteration != member.start;
  member.start = std::max(member.start, answer.iteration);
  if (--member.missing > 0) return;
  if (member.uneven && !planted(Mutant::admission_left_uneven)) {
    const View view = next_view();
    for (const WorkerId worker : workers_of(lead))
      to_shards_of(worker, msg::Raise{worker, member.start, view}, out);
  }
  member.clock = std::max(member.clock, Clock(member.start.value()));
  known_.insert(lead);
  start_admitted(out);
}

void Scheduler::start_admitted(Outbox& out) {
  // The first workers start together, so that none runs ahead of those that the shards do not know
  // yet.
  const bool first = count_in({State::running, State::idle, State::stopped}) == 0;
  if (first && known_.size() < count_in({State::admitting})) return;
  for (const WorkerId lead : std::exchange(known_, {})) {
    auto& member = members_.at(lead);
    // Those of its stages that have heard the Stop would not hear the Start.
    if (phase_ != Phase::training || member.leaving()) continue;
    enter(lead, State::running);
    leases_.skip_to(lead, member.start);
    for (auto& stage : member.stages) stage.heard = stage.idle = false;
    to_stages(lead, msg::Start{member.start, ++member.starts}, out);
  }
  if (!waiting_.empty()) data_came_back(out);  // parts of rounds before a start may have
}

void Scheduler::idle(WorkerId worker, const msg::Idle& said, Outbox& out) {
  const WorkerId lead = job_->stages->lead_of(worker);
  auto& member = members_.at(lead);
  if (member.state != State::running || said.start != member.starts) return;
  auto& stage = stage_of(worker);
  stage.idle = true;
  stage.clock = said.clock;
  if (!member.all_idle()) return;
  confirm(lead, member.least_clock(), out);
  enter(lead, State::idle);
  // A round may have been cut since it was told that there is no data. And a request that was sent
  // twice may have been granted since then: the worker has not looked at that lease.
  for (const auto& range : leases_.take_back(lead).back) emit_returned(lead, range, out);
  if (!planted(Mutant::waits_for_the_idle)) remove(lead, out);
  data_came_back(out);
  finish_if_done(out);
}

void Scheduler::on_link(Address peer, Outbox& out) {
  if (peer.kind != RoleKind::worker || !knows(WorkerId(peer.index))) return;
  const WorkerId worker(peer.index);
  const auto& member = member_of(worker);
  const auto& stage = stage_of(worker);
  const bool out_of_it = member.state == State::fencing || member.state == State::gone;
  // A stage in the middle of a pipeline may never say anything that it could be refused for.
  if (out_of_it && !stage.joined && job_->stages->piped()) refuse_evicted(worker, out);
  if (member.state == State::running && !stage.heard && !planted(Mutant::start_not_sent_again))
    to_worker(worker, msg::Start{member.start, member.starts}, out);
  if (member.state == State::running && member.late > member.start)
    to_worker(worker, msg::PushDropped{member.late}, out);
  const bool to_stop = phase_ == Phase::stopping || stage.leaving();
  const bool may_wait = member.state != State::gone || stage.joined;
  if (to_stop && member.state != State::stopped && may_wait &&
      !planted(Mutant::stop_not_sent_again))
    to_worker(worker, msg::Stop{}, out);
}

void Scheduler::remove(WorkerId lead, Outbox& out) {
  interval_.erase(lead);
  const View view = next_view();
  for (const WorkerId worker : workers_of(lead))
    to_shards_of(worker, msg::Remove{worker, view}, out);
}

void Scheduler::leave(WorkerId worker, Outbox& out) {
  if (stage_of(worker).incarnation == Incarnation(0)) return;  // it has yet to come
  const WorkerId lead = job_->stages->lead_of(worker);
  auto& member = members_.at(lead);
  for (auto& stage : member.stages)
    if (stage.incarnation != Incarnation(0)) stage.leaves = life_of(stage.incarnation);
  if (member.state == State::gone || member.state == State::stopped) {
    for (const WorkerId one : workers_of(lead))
      if (std::exchange(stage_of(one).joined, false)) to_worker(one, msg::Stop{}, out);
    say_left(lead, out);
    fail_if_alone(lead, out);  // for which the run may have gone on
  } else if (member.state != State::fencing) {
    to_stages(lead, msg::Stop{}, out);
    if (planted(Mutant::leaver_not_awaited))
      for (const WorkerId one : workers_of(lead)) stopped(one, {member.clock, member.starts}, out);
  }
}

void Scheduler::say_left(WorkerId lead, Outbox& out) {
  for (const WorkerId worker : workers_of(lead))
    out.emit({.kind = Event::Kind::left, .worker = worker});
}

void Scheduler::stopped(WorkerId worker, const msg::Stopped& said, Outbox& out) {
  const WorkerId lead = job_->stages->lead_of(worker);
  auto& member = members_.at(lead);
  const bool left = member.leaving();
  const bool over = phase_ == Phase::stopping || phase_ == Phase::ended;
  if (!over && !left) return;
  // The Start was lost with a connection, and the Stop was not: the stages before it may have begun
  // what it will not go on with.
  if (job_->stages->piped() && member.state == State::running && said.start < member.starts)
    return evict(worker, "it was told to stop before it had heard that it starts", out);
  auto& stage = stage_of(worker);
  stage.stopped = true;
  stage.clock = said.clock;
  if (!member.all_stopped()) return;
  if (over) {
    confirm(lead, member.least_clock(), out);
    enter(lead, State::stopped);
    remove(lead, out);
    if (left) say_left(lead, out);
    return finish_if_done(out);
  }
  // All that it pushed is acknowledged, so it may be forgotten without being fenced.
  member.end_reason = "it was asked to leave";
  member.took_part = member.has_started();
  part_with(lead, stopped_apart(member), out);
  begin_if_gathered(out);
  start_admitted(out);
  fail_if_alone(lead, out);
  data_came_back(out);
  finish_if_done(out);
}

}  // namespace leeway
