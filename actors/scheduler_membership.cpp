// The scheduler's membership: admission, idling, eviction (docs/staleness.md, "Who takes part").
#include <algorithm>
#include <utility>

#include "actors/scheduler.hpp"
#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

void Scheduler::join(WorkerId worker, Incarnation incarnation, Outbox& out) {
  auto& member = members_.at(worker);
  if (incarnation == member.incarnation && member.state == State::gone)
    // Evicted before it started: it must come back under a new incarnation, which the shards have
    // not fenced.
    return refuse_evicted(worker, out);
  if (incarnation <= member.incarnation && member.state != State::absent) return;  // a repeat
  if (member.state != State::absent && member.state != State::gone) {
    // Only an evicted worker, or one that was started again, begins a new life: the old one is
    // over.
    evict(worker, "a new life of it has begun", out);
    member.comes_back = incarnation;
    return;
  }
  member.incarnation = incarnation;
  enter(worker, State::joined);
  out.watch(address_of(worker));  // of a new life the host has told nothing yet
  if (phase_ == Phase::stopping || phase_ == Phase::ended || leaving(member))
    return to_worker(worker, msg::Stop{}, out);
  if (phase_ == Phase::gathering) return begin_if_gathered(out);
  admit(worker, out);
}

void Scheduler::begin_if_gathered(Outbox& out) {
  if (phase_ != Phase::gathering || count_in({State::absent}) > 0) return;
  const auto joined = members_in({State::joined});
  if (joined.empty()) return;
  phase_ = Phase::training;
  for (const WorkerId worker : joined) admit(worker, out);
}

void Scheduler::admit(WorkerId worker, Outbox& out) {
  auto& member = members_.at(worker);
  enter(worker, State::admitting);
  member.missing = planted(Mutant::started_too_early) ? 1 : job_->layout->shards();
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
  to_shards(msg::Admit{worker, member.incarnation, at, next_view()}, out);
}

void Scheduler::admitted(const msg::Admitted& answer, Outbox& out) {
  const auto found = members_.find(answer.worker);
  if (found == members_.end() || found->second.state != State::admitting ||
      found->second.missing == 0)
    return;
  auto& member = found->second;
  member.uneven |= member.missing < job_->layout->shards() && answer.iteration != member.start;
  member.start = std::max(member.start, answer.iteration);
  if (--member.missing > 0) return;
  if (member.uneven && !planted(Mutant::admission_left_uneven)) {
    to_shards(msg::Raise{answer.worker, member.start, next_view()}, out);
  }
  member.clock = std::max(member.clock, Clock(member.start.value()));
  known_.insert(answer.worker);
  start_admitted(out);
}

void Scheduler::start_admitted(Outbox& out) {
  // The first workers start together, so that none runs ahead of those that the shards do not know
  // yet.
  const bool first = count_in({State::running, State::idle, State::stopped}) == 0;
  if (first && known_.size() < count_in({State::admitting})) return;
  for (const WorkerId worker : std::exchange(known_, {})) {
    auto& member = members_.at(worker);
    enter(worker, State::running);
    leases_.skip_to(worker, member.start);
    member.heard = false;
    to_worker(worker, msg::Start{member.start, ++member.starts}, out);
  }
  if (!waiting_.empty()) data_came_back(out);  // parts of rounds before a start may have
}

void Scheduler::on_link(Address peer, Outbox& out) {
  if (peer.kind != RoleKind::worker || !members_.contains(WorkerId(peer.index))) return;
  const WorkerId worker(peer.index);
  const auto& member = members_.at(worker);
  if (member.state == State::running && !member.heard && !planted(Mutant::start_not_said_again))
    to_worker(worker, msg::Start{member.start, member.starts}, out);
  if (member.state == State::running && member.late > member.start)
    to_worker(worker, msg::Late{member.late}, out);
  const bool to_stop = phase_ == Phase::stopping || leaving(member);
  if (to_stop && member.state != State::stopped && member.state != State::gone &&
      !planted(Mutant::stop_not_said_again))
    to_worker(worker, msg::Stop{}, out);
}

void Scheduler::refuse_evicted(WorkerId worker, Outbox& out) {
  to_worker(worker, msg::Refused{msg::Refused::Reason::unknown_worker, "evicted", {}}, out);
}

void Scheduler::remove(WorkerId worker, Outbox& out) {
  interval_.erase(worker);
  to_shards(msg::Remove{worker, next_view()}, out);
}

void Scheduler::leave(WorkerId worker, Outbox& out) {
  auto& member = members_.at(worker);
  if (member.incarnation == Incarnation(0)) return;  // it has yet to come
  member.leaves = life_of(member.incarnation);
  if (member.state == State::gone || member.state == State::stopped) {
    out.emit({.kind = Event::Kind::left, .worker = worker});
  } else if (member.state != State::fencing) {
    to_worker(worker, msg::Stop{}, out);
    if (planted(Mutant::leaver_not_awaited)) stopped(worker, member.clock, out);
  }
}

void Scheduler::stopped(WorkerId worker, Clock clock, Outbox& out) {
  auto& member = members_.at(worker);
  const bool left = leaving(member);
  if (phase_ == Phase::stopping || phase_ == Phase::ended) {
    confirm(worker, clock, out);
    enter(worker, State::stopped);
    remove(worker, out);
    if (left) out.emit({.kind = Event::Kind::left, .worker = worker});
    return finish_if_done(out);
  }
  if (!left) return;
  // All that it pushed is acknowledged, so it may be forgotten without being fenced.
  confirm(worker, clock, out);
  member.end_reason = "it was asked to leave";
  const std::uint64_t returned = part_with(worker, out);
  remove(worker, out);
  out.send(kMonitor, encode({.incarnation = member.incarnation,
                             .body = msg::Evicted{worker, member.end_reason, returned, false}}));
  begin_if_gathered(out);
  start_admitted(out);
  fail_if_alone(worker);
  data_came_back(out);
  finish_if_done(out);
}

std::uint64_t Scheduler::part_with(WorkerId worker, Outbox& out) {
  std::uint64_t returned = 0;
  for (const auto& range : leases_.take_back(worker)) {
    returned += static_cast<std::uint64_t>(range.count());
    emit_returned(worker, range, out);
  }
  waiting_.erase(worker);
  enter(worker, State::gone);
  balance_->forget(worker);
  if (leaving(members_.at(worker))) out.emit({.kind = Event::Kind::left, .worker = worker});
  return returned;
}

void Scheduler::fail_if_alone(WorkerId last_to_end) {
  if (count_in({State::gone}) < members_.size() || phase_ == Phase::stopping ||
      leases_.all_trained() || anybody_to_come())
    return;
  phase_ = Phase::stopping;
  end_.reason = msg::RunEnded::Reason::failed;
  end_.text = concat("no worker is left; the last to end was worker ", last_to_end, ": ",
                     members_.at(last_to_end).end_reason);
}

void Scheduler::on_down(Address actor, const std::string& reason, Outbox& out) {
  if (phase_ == Phase::ended) return;
  if (actor.kind == RoleKind::worker) {
    evict(WorkerId(actor.index), reason, out);
  } else if (actor.kind == RoleKind::shard) {
    // Its blocks are lost, and with them what the workers wait for: nothing to be gained by going
    // on.
    end_.reason = msg::RunEnded::Reason::failed;
    end_.text = concat(actor, " ended: ", reason, "; its part of the weights is lost");
    finish(out);
  }
}

void Scheduler::evict(WorkerId worker, const std::string& reason, Outbox& out) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  auto& member = found->second;
  if (member.state == State::fencing) member.comes_back.reset();  // the new life has ended as well
  if (member.state == State::gone || member.state == State::fencing ||
      member.state == State::stopped)
    return;
  out.emit({.kind = Event::Kind::evicted, .worker = worker});
  member.took_part = member.state == State::running || member.state == State::idle;
  enter(worker, State::fencing);
  member.end_reason = reason;
  member.missing = job_->layout->shards();
  member.fenced.clear();
  to_shards(msg::Fence{worker, next_view()}, out);
  refuse_evicted(worker, out);  // should it live
  begin_if_gathered(out);
  start_admitted(out);
}

bool Scheduler::anybody_to_come() const {
  const auto comes = [&](const plan::Fault& fault) {
    if (fault.actor.kind != RoleKind::worker) return false;
    const auto& member = members_.at(WorkerId(fault.actor.index));
    if (std::holds_alternative<plan::Joins>(fault.kind))
      return member.incarnation == Incarnation(0);
    const auto* crash = std::get_if<plan::Crash>(&fault.kind);
    return crash && crash->back > 0 && member.end_reason == plan::kPlannedCrash;
  };
  return std::any_of(job_->faults.begin(), job_->faults.end(), comes);
}

void Scheduler::fenced(const msg::Fenced& answer, Outbox& out) {
  const auto found = members_.find(answer.worker);
  if (found == members_.end() || found->second.state != State::fencing ||
      found->second.missing == 0)
    return;
  auto& member = found->second;
  member.fenced.push_back(answer);
  if (--member.missing > 0) return;
  // What every shard has whole is trained. An iteration that only some have, or have parts of, is
  // torn: its samples are trained again, and it is counted.
  Clock whole = member.fenced.front().clock;
  std::int64_t touched = 0;
  for (const auto& shard : member.fenced) {
    whole = planted(Mutant::torn_counted_as_trained) ? std::max(whole, shard.clock)
                                                     : std::min(whole, shard.clock);
    touched = std::max(touched, shard.clock.value() + (shard.applied.empty() ? 0 : 1));
  }
  // One that had not started may stand unevenly, but has pushed nothing.
  const std::int64_t torn = member.took_part ? touched - whole.value() : 0;
  if (torn > 0)
    out.emit({.kind = Event::Kind::torn,
              .worker = answer.worker,
              .iteration = Iteration(whole.value()),
              .value = torn});
  torn_pushes_ += static_cast<std::uint64_t>(torn);
  confirm(answer.worker, whole, out);
  const std::uint64_t returned = part_with(answer.worker, out);
  if (!planted(Mutant::waits_for_the_evicted)) remove(answer.worker, out);
  out.send(kMonitor,
           encode({.incarnation = member.incarnation,
                   .body = msg::Evicted{answer.worker, member.end_reason, returned, torn > 0}}));
  if (const auto incarnation = std::exchange(member.comes_back, std::nullopt))
    join(answer.worker, *incarnation, out);
  fail_if_alone(answer.worker);
  data_came_back(out);
  finish_if_done(out);
}

}  // namespace leeway
