// The scheduler's evictions: a pipeline is out, and what it leaves behind is settled
// (docs/staleness.md, "Who takes part").
#include <algorithm>
#include <utility>

#include "actors/scheduler/scheduler.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

void Scheduler::on_down(Address actor, const std::string& reason, Outbox& out) {
  if (phase_ == Phase::ended) return;
  if (actor.kind == RoleKind::worker && knows(WorkerId(actor.index))) {
    const WorkerId worker(actor.index);
    auto& stage = stage_of(worker);
    stage.ended = true;
    stage.end_reason = reason;
    stage.comes_back.reset();  // the new life has ended as well
    evict(worker, reason, out);
    stage.joined = false;
    // Others may have waited for it.
    if (member_of(worker).state == State::gone) fail_if_alone(job_->stages->lead_of(worker), out);
  } else if (actor.kind == RoleKind::shard) {
    // Its blocks are lost, and with them what the workers wait for: nothing to be gained by going
    // on.
    end_.reason = msg::RunEnded::Reason::failed;
    end_.text = concat(actor, " ended: ", reason, "; its part of the weights is lost");
    finish(out);
  }
}

void Scheduler::refuse_evicted(WorkerId worker, Outbox& out) {
  to_worker(worker, msg::Refused{msg::Refused::Reason::unknown_worker, "evicted", {}}, out);
}

void Scheduler::evict(WorkerId worker, const std::string& reason, Outbox& out) {
  const Stages& stages = *job_->stages;
  const WorkerId lead = stages.lead_of(worker);
  auto& member = members_.at(lead);
  if (member.state == State::gone || member.state == State::fencing ||
      member.state == State::stopped)
    return;
  out.emit({.kind = Event::Kind::evicted, .worker = lead});
  member.took_part = member.has_started();
  enter(lead, State::fencing);
  member.end_reason = stages.piped()
                          ? concat("pipeline ", lead.value() / stages.count(), " ended: worker ",
                                   worker, " (stage ", stages.stage_of(worker), "): ", reason)
                          : reason;
  member.missing = pairs_;
  for (auto& stage : member.stages) stage.joined = false;
  const View view = next_view();
  for (const WorkerId one : workers_of(lead)) to_shards_of(one, msg::Fence{one, view}, out);
  for (const WorkerId one : workers_of(lead)) refuse_evicted(one, out);  // should it live
  begin_if_gathered(out);
  start_admitted(out);
}

void Scheduler::fenced(ShardId shard, const msg::Fenced& answer, Outbox& out) {
  if (!knows(answer.worker)) return;
  const Stages& stages = *job_->stages;
  const WorkerId lead = stages.lead_of(answer.worker);
  auto& member = members_.at(lead);
  if (member.state != State::fencing || member.missing == 0) return;
  const auto& parts = stages.share_of(answer.worker).at[shard.value()].parts;
  if (parts.empty() ||
      !member.partial.add(stages.stage_of(answer.worker), shard, answer.clock, answer.applied,
                          static_cast<std::uint32_t>(parts.size())))
    return;
  if (--member.missing > 0) return;
  part_with(lead, std::exchange(member.partial, {}), out);
  for (const WorkerId worker : workers_of(lead))
    if (const auto incarnation = std::exchange(stage_of(worker).comes_back, std::nullopt))
      join(worker, *incarnation, out);
  fail_if_alone(lead, out);
  data_came_back(out);
  finish_if_done(out);
}

PartialIterations Scheduler::stopped_apart(const Member& member) const {
  PartialIterations partial;
  for (std::uint32_t stage = 0; stage < member.stages.size(); ++stage) {
    const auto& share = job_->stages->share(stage);
    for (const ShardId shard : share.shards)
      partial.add(stage, shard, member.stages[stage].clock, {},
                  static_cast<std::uint32_t>(share.at[shard.value()].parts.size()));
  }
  return partial;
}

void Scheduler::part_with(WorkerId lead, const PartialIterations& partial, Outbox& out) {
  auto& member = members_.at(lead);
  const Clock whole = partial.whole();
  // One that had not started may stand unevenly, but has pushed nothing.
  const std::int64_t count = member.took_part ? partial.count() : 0;
  if (count > 0)
    out.emit({.kind = Event::Kind::partial,
              .worker = lead,
              .iteration = Iteration(whole.value()),
              .value = count});
  partial_pushes_ += static_cast<std::uint64_t>(count);
  confirm(lead, whole, out);
  const auto taken = leases_.take_back(lead, partial);
  for (const auto& range : taken.trained) emit_trained(lead, range, out);
  std::uint64_t returned = 0;
  for (const auto& range : taken.back) {
    returned += static_cast<std::uint64_t>(range.count());
    emit_returned(lead, range, out);
  }
  waiting_.erase(lead);
  enter(lead, State::gone);
  for (auto& stage : member.stages) stage.joined = false;
  balance_->forget(lead);
  if (member.leaving()) say_left(lead, out);
  if (!planted(Mutant::waits_for_the_evicted)) remove(lead, out);
  out.send(kMonitor, encode({.incarnation = member.stages.front().incarnation,
                             .body = msg::Evicted{lead, member.end_reason, returned, count > 0}}));
}

void Scheduler::fail_if_alone(WorkerId last_to_end, Outbox& out) {
  if (count_in({State::gone}) < members_.size() || leases_.all_trained()) return;
  const auto returns = [&](const auto& one) { return may_return(one.first, one.second); };
  if (std::any_of(members_.begin(), members_.end(), returns)) return;
  const std::string& reason = members_.at(last_to_end).end_reason;
  stop(msg::RunEnded::Reason::failed,
       job_->stages->piped()
           ? concat("no worker is left to make a pipeline of; the last to end was that of worker ",
                    last_to_end, ": ", reason)
           : concat("no worker is left; the last to end was worker ", last_to_end, ": ", reason),
       out);
}

bool Scheduler::may_return(WorkerId lead, const Member& member) const {
  for (const WorkerId worker : workers_of(lead)) {
    const auto& stage = member.stages[job_->stages->stage_of(worker)];
    if (stage.leaving()) return false;
    const auto brings = [&](const plan::Fault& fault) {
      if (fault.actor != address_of(worker)) return false;
      if (std::holds_alternative<plan::Joins>(fault.kind))
        return stage.incarnation == Incarnation(0);
      // A crash for good has another reason, also after one that it came back from.
      return std::holds_alternative<plan::Crash>(fault.kind) &&
             stage.end_reason == plan::kPlannedCrash;
    };
    if (stage.ended && std::none_of(job_->faults.begin(), job_->faults.end(), brings)) return false;
  }
  return true;
}

}  // namespace leeway
