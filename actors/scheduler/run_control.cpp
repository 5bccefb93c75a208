#include "actors/scheduler/run_control.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/store.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr const char* kInterrupted = "it was asked to stop";

}  // namespace

RunControl::RunControl(const Job& job, const Roster& roster, const Mailer& mailer,
                       const LeaseBook& book, const BoundControl& bound, Checkpoints& checkpoints,
                       SnapshotProposals& snapshots)
    : roster_(roster),
      mailer_(mailer),
      book_(book),
      bound_(bound),
      checkpoints_(checkpoints),
      snapshots_(snapshots),
      stages_(job.stages),
      faults_(job.faults),
      has_grace_(job.consistency->grace().has_length()),
      workers_return_(job.workers_return),
      most_iterations_(job.plan.stop.iterations) {
  if (!job.resumed) return;
  data_.partial_pushes = job.resumed->manifest.scheduler.partial_pushes;
  data_.dropped_pushes = job.resumed->manifest.scheduler.dropped_pushes;
}

void RunControl::stop(msg::RunEnded::Reason reason, std::string text, Outbox& out) {
  // While the workers stop, the loss of one may still diverge.
  if (phase() == Phase::stopping && reason == msg::RunEnded::Reason::failed) {
    data_.end.reason = reason;
    data_.end.text = std::move(text);
    data_.last_checkpoint = false;
  }
  if (is_over()) return;
  data_.phase = Phase::stopping;
  data_.end.reason = reason;
  data_.end.text = std::move(text);
  snapshots_.abandon();
  end_grace(out);
  for (const auto& [lead, member] : roster_.members()) {
    if (member.state == State::fencing || member.state == State::stopped) continue;
    // In a pipeline that is gone, some stages may wait for the others.
    for (const WorkerId worker : roster_.workers_of(lead))
      if (member.state != State::gone || roster_.stage_of(worker).joined) mailer_.stop(worker, out);
  }
  finish_if_done(out);
}

void RunControl::stop_without_checkpoint(msg::RunEnded::Reason reason, std::string text,
                                         Outbox& out) {
  if (!is_over()) data_.last_checkpoint = false;
  stop(reason, std::move(text), out);
}

bool RunControl::interrupt(Outbox& out) {
  if (!is_training() || !checkpoints_.enabled()) {
    stop(msg::RunEnded::Reason::interrupted, kInterrupted, out);
    return false;
  }
  data_.interrupted = true;
  checkpoints_.request();
  end_grace(out);
  return true;
}

void RunControl::end_grace(Outbox& out) const {
  if (has_grace_) mailer_.to_lead_shard(msg::EndGrace{}, out);
}

void RunControl::checkpointed(Outbox& out) {
  if (data_.interrupted)
    stop_without_checkpoint(msg::RunEnded::Reason::interrupted, kInterrupted, out);
}

void RunControl::give_up_checkpoint(Outbox& out) {
  if (data_.interrupted) stop(msg::RunEnded::Reason::interrupted, kInterrupted, out);
}

void RunControl::finish_if_done(Outbox& out) {
  if (is_training() && book_.all_trained() && roster_.count({State::fencing}) == 0)
    return stop(msg::RunEnded::Reason::finished,
                book_.at_last_iteration()
                    ? concat("all ", most_iterations_, " iterations are trained")
                    : "all epochs are trained",
                out);
  if (phase() != Phase::stopping) return;
  if (roster_.count({State::stopped, State::gone}) < roster_.size() || checkpoints_.busy()) return;
  if (std::exchange(data_.last_checkpoint, false) && checkpoints_.wanted_at_end(data_.end.reason))
    return snapshots_.store_final(counts(), out);
  finish(out);
}

void RunControl::finish(Outbox& out) {
  data_.phase = Phase::ended;
  report(out);
  data_.end.samples_trained = book_.samples_trained();
  data_.end.partial_pushes = data_.partial_pushes;
  data_.end.dropped_pushes = data_.dropped_pushes;
  out.send(kMonitor, encode({.body = data_.end}));
  mailer_.to_shards(msg::Finish{}, out);
}

void RunControl::count_lost_residual() {
  if (!is_over()) ++data_.end.lost_residuals;
}

void RunControl::fail_at_once(std::string text, Outbox& out) {
  data_.end.reason = msg::RunEnded::Reason::failed;
  data_.end.text = std::move(text);
  finish(out);
}

void RunControl::fail_if_alone(WorkerId last, Outbox& out) {
  if (roster_.count({State::gone}) < roster_.size() || book_.all_trained()) return;
  const auto returns = [&](const auto& entry) { return may_return(entry.first); };
  if (std::any_of(roster_.members().begin(), roster_.members().end(), returns)) return;
  const Member& member = roster_.at(last);
  if (std::ranges::all_of(member.stages, &Member::Stage::left_by_itself))
    return stop(msg::RunEnded::Reason::target_reached, "all workers have left", out);
  const std::string& reason = member.end_reason;
  stop(msg::RunEnded::Reason::failed,
       stages_->has_several()
           ? concat("no worker is left to make a ", stages_->piped() ? "pipeline" : "host group",
                    " of; the last to end was that of worker ", last, ": ", reason)
           : concat("no worker is left; the last to end was worker ", last, ": ", reason),
       out);
}

bool RunControl::may_return(WorkerId lead) const {
  for (const WorkerId worker : roster_.workers_of(lead)) {
    const auto& stage = roster_.stage_of(worker);
    if (stage.leaving()) return false;
    const auto brings = [&](const plan::Fault& fault) {
      if (fault.actor != address_of(worker)) return false;
      if (std::holds_alternative<plan::Joins>(fault.kind)) return stage.nonce == JoinNonce();
      return std::holds_alternative<plan::Crash>(fault.kind) &&
             stage.end_reason.kind == EndReason::Kind::planned_crash;
    };
    if (stage.ended && !workers_return_ && std::none_of(faults_.begin(), faults_.end(), brings))
      return false;
  }
  return true;
}

void RunControl::report(Outbox& out) const {
  const auto live = roster_.count({State::joined, State::admitting, State::running, State::idle}) *
                    stages_->count();
  out.send(kMonitor, encode({.body = msg::SchedulerReport{
                                 book_.epoch(), book_.samples_trained(), data_.partial_pushes,
                                 static_cast<std::uint32_t>(live), bound_.bound()}}));
}

std::string RunControl::describe() const {
  constexpr std::string_view kPhases[] = {"gathering", "training", "stopping", "ended"};
  return concat("scheduler ", kPhases[static_cast<std::size_t>(phase())], roster_.describe());
}

}  // namespace leeway
