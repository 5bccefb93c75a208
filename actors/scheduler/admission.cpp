#include "actors/scheduler/admission.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {

bool Admission::join(WorkerId worker, JoinNonce nonce, Outbox& out) {
  const auto& member = roster_.member_of(worker);
  auto& stage = roster_.stage_of(worker);
  const bool is_new = nonce > stage.nonce;
  if (member.state == State::fencing) {
    // It waits until its last session is settled.
    if (is_new && nonce > stage.rejoins.value_or(JoinNonce())) stage.rejoins = nonce;
    return true;
  }
  if (member.state != State::absent && member.state != State::gone) return !is_new;  // or a repeat
  if (!is_new && stage.joined) return true;  // a repeat, while it waits for other stages
  if (member.state == State::gone && nonce < stage.nonce) return true;
  take_in(worker, nonce, out);
  return true;
}

void Admission::take_in(WorkerId worker, JoinNonce nonce, Outbox& out) {
  const WorkerId lead = stages_->lead_of(worker);
  const auto& member = roster_.at(lead);
  auto& stage = roster_.stage_of(worker);
  stage.nonce = nonce;
  stage.left_by_itself = false;
  stage.heard = true;
  stage.ended = stage.idle = stage.stopped = false;
  const bool to_stop = run_.is_over() || stage.leaving();
  if (to_stop && member.state == State::gone)  // no other stage waits for it
    return mailer_.stop(worker, out);
  stage.joined = true;
  out.watch(address_of(worker));  // the end of an earlier launch may have been reported already
  if (to_stop) mailer_.stop(worker, out);
  if (!member.complete()) return;
  roster_.enter(lead, State::joined);
  if (to_stop || member.leaving()) return;
  if (run_.phase() == RunControl::Phase::gathering) return begin_if_gathered(out);
  admit(lead, out);
}

void Admission::begin_if_gathered(Outbox& out) {
  if (run_.phase() != RunControl::Phase::gathering || roster_.count({State::absent}) > 0) return;
  const auto joined = roster_.in({State::joined});
  if (joined.empty()) return;
  run_.begin_training();
  for (const WorkerId lead : joined) admit(lead, out);
}

void Admission::admit(WorkerId lead, Outbox& out) {
  roster_.enter(lead, State::admitting);
  auto& member = roster_.at(lead);
  member.missing = planted(Mutant::started_too_early) ? 1 : mailer_.stage_shard_pairs();
  member.start = {};
  member.uneven = false;
  member.barrier = 0;
  // With rounds, the member starts after the last round that has shares, otherwise at the clock of
  // the slowest running member.
  Iteration at(member.clock.value());
  if (by_rounds_) {
    at = std::max(at, leases_.book().horizon());
  } else {
    std::optional<Clock> least;
    for (const WorkerId other : roster_.in({State::running}))
      least = std::min(least.value_or(roster_.at(other).clock), roster_.at(other).clock);
    if (least) at = std::max(at, Iteration(least->value()));
  }
  member.admitted_by = roster_.next_view();
  member.session = Session(member.session.value() + 1);
  leases_.admitted(lead, at);
  mailer_.for_each_stage(
      lead,
      [&](WorkerId worker) {
        return msg::Admit{worker, member.session, at, member.admitted_by};
      },
      out);
}

void Admission::open_barriers(Outbox& out) {
  if (!run_.is_training()) return;
  std::vector<WorkerId> waiting;
  for (const WorkerId lead : roster_.in({State::idle}))
    if (roster_.at(lead).barrier > 0) waiting.push_back(lead);
  if (waiting.empty()) return;
  const bool all_wait =
      waiting.size() ==
      roster_.count({State::joined, State::admitting, State::running, State::idle, State::fencing});
  if (all_wait) {
    const auto number = [&](WorkerId lead) { return roster_.at(lead).barrier; };
    open_barriers_ = std::max(open_barriers_, number(std::ranges::min(waiting, {}, number)));
  }
  for (const WorkerId lead : waiting)
    if (roster_.at(lead).barrier <= open_barriers_ && !roster_.at(lead).leaving()) admit(lead, out);
}

bool Admission::admitted(const msg::Admitted& answer, Outbox& out) {
  const WorkerId lead = stages_->lead_of(answer.worker);
  auto& member = roster_.at(lead);
  if (member.state != State::admitting || member.missing == 0) return false;
  if (answer.view != member.admitted_by) return false;  // of an earlier session
  member.uneven |= member.missing < mailer_.stage_shard_pairs() && answer.iteration != member.start;
  member.start = std::max(member.start, answer.iteration);
  if (--member.missing > 0) return false;
  if (member.uneven && !planted(Mutant::admission_left_uneven)) {
    const View view = roster_.next_view();
    mailer_.for_each_stage(
        lead,
        [&](WorkerId worker) {
          return msg::Raise{worker, member.start, view};
        },
        out);
  }
  member.clock = std::max(member.clock, Clock(member.start.value()));
  ready_.insert(lead);
  return true;
}

void Admission::start_ready(Outbox& out) {
  // The first members start together, so that none runs ahead of one that the shards do not know
  // yet. Most calls end here, without looking at each member.
  const bool first = roster_.count({State::running, State::idle, State::stopped}) == 0;
  if (first && ready_.size() < roster_.count({State::admitting})) return;
  std::erase_if(ready_, [&](WorkerId lead) { return !roster_.at(lead).is_ready(); });
  if (first && ready_.size() < roster_.count({State::admitting})) return;
  for (const WorkerId lead : std::exchange(ready_, {})) {
    auto& member = roster_.at(lead);
    // A stage that has heard the Stop would not hear the Start.
    if (!run_.is_training() || member.leaving()) continue;
    roster_.enter(lead, State::running);
    leases_.skip_to(lead, member.start);
    for (auto& stage : member.stages) stage.heard = stage.idle = false;
    for (const WorkerId worker : roster_.workers_of(lead)) start(worker, out);
  }
}

void Admission::send_again(WorkerId worker, Outbox& out) const {
  const auto& member = roster_.member_of(worker);
  const auto& stage = roster_.stage_of(worker);
  // A stage in the middle of a pipeline may never send anything that could be refused, and a worker
  // of a group sends only gradients to its lead.
  if (member.is_out() && !stage.joined && stages_->has_several())
    mailer_.refuse_evicted(worker, out);
  if (member.state == State::running && !stage.heard && !planted(Mutant::start_not_sent_again))
    start(worker, out);
}

void Admission::start(WorkerId worker, Outbox& out) const {
  const Member& member = roster_.member_of(worker);
  mailer_.to_worker(worker,
                    msg::Start{member.start, roster_.stage_of(worker).nonce, open_barriers_}, out);
}

}  // namespace leeway
