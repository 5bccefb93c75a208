#include "actors/scheduler/scheduler.hpp"

#include <cmath>
#include <utility>

#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr Duration kSchedulerReportInterval = milliseconds(200);
constexpr TimerToken kReportTimer = 1;
constexpr TimerToken kTimeLimit = 2;
constexpr TimerToken kCheckpointTimer = 3;
/// From an interrupt until the run stops even without a checkpoint.
constexpr Duration kInterruptLimit = seconds(20);
constexpr TimerToken kInterruptTimer = 4;

}  // namespace

Scheduler::Scheduler(std::shared_ptr<const Job> job, const std::set<WorkerId>& later)
    : job_(std::move(job)),
      roster_(*job_, later),
      shards_(channels_to_shards(*job_)),
      mailer_(*job_, roster_, shards_),
      leases_(*job_, roster_, mailer_),
      bound_(*job_, roster_, mailer_),
      checkpoints_(job_, roster_, leases_, bound_),
      snapshots_(*job_, roster_, leases_, mailer_, checkpoints_),
      run_(*job_, roster_, mailer_, leases_.book(), bound_, checkpoints_, snapshots_),
      admission_(*job_, roster_, mailer_, leases_, run_),
      evictions_(*job_, roster_, mailer_),
      departures_(*job_, roster_, mailer_, leases_, bound_, run_),
      rounds_(roster_, mailer_, leases_, run_),
      replicas_(*job_) {}

void Scheduler::on_start(Outbox& out) {
  for (std::uint32_t worker = 0; worker < job_->plan.workers; ++worker)
    out.watch(address_of(WorkerId(worker)));
  replicas_.start(out);
  out.after(kSchedulerReportInterval, kReportTimer);
  if (job_->plan.stop.seconds > 0)
    out.after(nanoseconds(std::llround(job_->plan.stop.seconds * 1e9)), kTimeLimit);
  if (checkpoints_.interval() > Duration()) out.after(checkpoints_.interval(), kCheckpointTimer);
}

void Scheduler::on_timer(TimerToken token, Outbox& out) {
  if (run_.phase() == Phase::ended) return;
  if (token == kTimeLimit) {
    run_.stop(msg::RunEnded::Reason::finished, "the time limit was reached", out);
  } else if (token == kCheckpointTimer) {
    checkpoints_.request();
    snapshot_if_due(out);
    out.after(checkpoints_.interval(), kCheckpointTimer);
  } else if (token == kInterruptTimer) {
    run_.give_up_checkpoint(out);
  } else {
    run_.report(out);
    for (Channel& shard : shards_) shard.acknowledge(out);
    out.after(kSchedulerReportInterval, kReportTimer);
  }
}

void Scheduler::on_part(Work& work, int, Outbox& out) {
  checkpoints_.committed(work, out);
  snapshot_if_due(out);
  run_.finish_if_done(out);
}

void Scheduler::on_down(Address actor, const EndReason& reason, Outbox& out) {
  if (is_replica(actor)) return replica_ended(actor, reason, out);
  if (run_.phase() == Phase::ended) return;
  if (knows(actor)) {
    const WorkerId worker(actor.index);
    auto& stage = roster_.stage_of(worker);
    const auto& member = roster_.member_of(worker);
    const bool waits = member.is_out() && (stage.joined || stage.rejoins.has_value());
    count_lost_residual(worker);
    stage.ended = true;
    stage.end_reason = reason;
    stage.rejoins.reset();
    evict(worker, reason.text, out);
    stage.joined = false;
    if (waits) mailer_.refuse_evicted(worker, out);  // it may live, and be idle
    // The run may have gone on for this worker only.
    if (roster_.member_of(worker).state == State::gone)
      run_.fail_if_alone(job_->stages->lead_of(worker), out);
  }
}

void Scheduler::replica_ended(Address actor, const EndReason& reason, Outbox& out) {
  if (replicas_.ended(actor, reason, out)) return;
  const std::string text = concat(actor, " ended: ", reason.text);
  out.send(kMonitor,
           encode({.body = msg::ReplicasChanged{ShardId(actor.index),
                                                msg::ReplicasChanged::Change::shard_lost, text}}));
  if (run_.phase() != Phase::ended)
    run_.fail_at_once(text + "; its part of the weights is lost", out);
}

void Scheduler::on_link(Address peer, Outbox& out) {
  if (is_replica(peer)) replicas_.send_again(peer, out);
  if (is_shard(peer)) return shards_[peer.index].send_again(out);
  if (!knows(peer)) return;
  const WorkerId worker(peer.index);
  admission_.send_again(worker, out);
  rounds_.send_again(worker, out);
  departures_.send_again(worker, out);
}

void Scheduler::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  if (knows(from)) return on_worker(WorkerId(from.index), envelope, out);
  if (is_shard(from)) return on_shard(from, envelope, out);
  if (const auto* ready = std::get_if<msg::StandbyReady>(&envelope.body);
      ready && is_replica(from) && from.kind == RoleKind::standby)
    return replicas_.ready(from, *ready, out);
  if (from == kHost && std::holds_alternative<msg::Interrupt>(envelope.body)) return interrupt(out);
  if (const auto* asked = std::get_if<msg::Leave>(&envelope.body);
      asked && from == kHost && roster_.has(asked->worker))
    return leave(asked->worker, out);
  if (const auto* sent = std::get_if<msg::Evaluated>(&envelope.body); sent && from == kMonitor)
    return evaluated(*sent, out);
  refuse_malformed(
      from, {}, concat("a ", name_of(envelope.body), " from ", from, " is not for the scheduler"),
      out);
}

void Scheduler::on_worker(WorkerId worker, Envelope& envelope, Outbox& out) {
  if (const auto* joined = std::get_if<msg::Join>(&envelope.body))
    return join(worker, joined->nonce, out);
  auto& stage = roster_.stage_of(worker);
  if (run_.phase() == Phase::ended) return;  // the totals have been reported
  if (const auto* asked = std::get_if<msg::Leave>(&envelope.body);
      asked && asked->worker == worker) {
    stage.left_by_itself = true;
    return leave(worker, out);
  }
  if (std::holds_alternative<msg::Refused>(envelope.body)) return;
  const auto& member = roster_.member_of(worker);
  const auto* done = std::get_if<msg::Stopped>(&envelope.body);
  const bool in_session = envelope.session == member.session;
  if (member.is_out()) {
    // A stage that waits for the others sends nothing but Stopped.
    if (!stage.joined) mailer_.refuse_evicted(worker, out);
    return;
  }
  if (done ? done->nonce != stage.nonce : !in_session) return;
  stage.heard |= in_session;
  if (done) return stopped(worker, envelope.session, *done, out);
  on_member(worker, envelope.body, out);
}

void Scheduler::on_member(WorkerId worker, Body& body, Outbox& out) {
  if (const auto* want = std::get_if<msg::WantLease>(&body)) {
    lease(worker, *want, out);
  } else if (const auto* idle = std::get_if<msg::Idle>(&body)) {
    this->idle(worker, *idle, out);
  } else if (const auto* sent = std::get_if<msg::Diverged>(&body)) {
    diverged(worker, *sent, out);
  } else {
    refuse_malformed(address_of(worker), {},
                     concat("a ", name_of(body), " is not for the scheduler"), out);
  }
}

void Scheduler::on_shard(Address from, Envelope& envelope, Outbox& out) {
  if (const auto* done = std::get_if<msg::Replicating>(&envelope.body))
    return replicas_.confirmed(from, *done, out);
  if (!shards_[from.index].receive(envelope)) return;
  if (const auto* answer = std::get_if<msg::Admitted>(&envelope.body)) {
    if (roster_.has(answer->worker) && admission_.admitted(*answer, out)) start_ready(out);
  } else if (const auto* fence = std::get_if<msg::Fenced>(&envelope.body)) {
    if (roster_.has(fence->worker)) fenced(ShardId(from.index), *fence, out);
  } else if (const auto* vote = std::get_if<msg::SnapshotVote>(&envelope.body)) {
    snapshots_.voted(*vote, out);
  } else if (const auto* taken = std::get_if<msg::SnapshotTaken>(&envelope.body)) {
    if (snapshots_.taken(*taken) &&
        checkpoints_.taken(run_.counts(), snapshots_.evaluated_at(), out))
      run_.checkpointed(out);
    snapshot_if_due(out);
  } else if (auto* stored = std::get_if<msg::Stored>(&envelope.body)) {
    checkpoints_.stored(ShardId(from.index), *stored, out);
    snapshot_if_due(out);
    run_.finish_if_done(out);
  } else if (const auto* proposed = std::get_if<msg::RoundClosed>(&envelope.body);
             proposed && from == address_of(ShardId(0)) &&
             job_->consistency->round_size().drops()) {
    if (rounds_.close(*proposed, out)) samples_came_back(out);
  } else if (!std::holds_alternative<msg::Refused>(envelope.body) &&
             !std::holds_alternative<msg::Received>(envelope.body)) {
    refuse_malformed(from, {}, concat("a ", name_of(envelope.body), " is not for the scheduler"),
                     out);
  }
}

void Scheduler::count_lost_residual(WorkerId worker) {
  if (job_->stages->share_of(worker).shards.empty()) return;  // it pushes nothing
  auto& stage = roster_.stage_of(worker);
  const auto& member = roster_.member_of(worker);
  const bool has_trained = member.has_started() || (member.is_out() && member.took_part);
  const std::uint32_t launch = launch_of(stage.nonce);
  if (job_->push_codecs && has_trained && std::exchange(stage.residual_counted, launch) != launch)
    run_.count_lost_residual();
}

void Scheduler::join(WorkerId worker, JoinNonce nonce, Outbox& out) {
  // A new process may join before the end of the last one is reported.
  if (launch_of(nonce) > launch_of(roster_.stage_of(worker).nonce)) count_lost_residual(worker);
  if (admission_.join(worker, nonce, out)) return;
  evict(worker, "it joins again", out, true);
  roster_.stage_of(worker).rejoins = nonce;
}

void Scheduler::evict(WorkerId worker, const std::string& reason, Outbox& out, bool rejoined) {
  if (!evictions_.evict(worker, reason, rejoined, out)) return;
  // Others may have waited for it.
  admission_.begin_if_gathered(out);
  start_ready(out);
}

void Scheduler::fenced(ShardId shard, const msg::Fenced& answer, Outbox& out) {
  const auto partial = evictions_.fenced(shard, answer);
  if (!partial) return;
  const WorkerId lead = job_->stages->lead_of(answer.worker);
  departures_.part_with(lead, *partial, out);
  for (const WorkerId worker : roster_.workers_of(lead))
    if (const auto nonce = std::exchange(roster_.stage_of(worker).rejoins, std::nullopt))
      join(worker, *nonce, out);
  run_.fail_if_alone(lead, out);
  samples_came_back(out);
  run_.finish_if_done(out);
  admission_.open_barriers(out);
}

void Scheduler::leave(WorkerId worker, Outbox& out) {
  if (roster_.stage_of(worker).nonce == JoinNonce()) return;  // has not come yet
  const WorkerId lead = job_->stages->lead_of(worker);
  const auto& member = roster_.at(lead);
  if (!departures_.leave(worker, out)) {
    run_.fail_if_alone(lead, out);  // the run may have gone on for this member only
  } else if (planted(Mutant::leaver_not_awaited) && member.state != State::fencing) {
    for (const WorkerId one : roster_.workers_of(lead))
      stopped(one, member.session, {member.clock, roster_.stage_of(one).nonce}, out);
  }
}

void Scheduler::stopped(WorkerId worker, Session session, const msg::Stopped& sent, Outbox& out) {
  switch (departures_.stopped(worker, session, sent, out)) {
    case Departures::AfterStopped::waits:
      return;
    case Departures::AfterStopped::start_lost:
      return evict(worker, "it heard the order to stop before its start", out);
    case Departures::AfterStopped::stopped:
      return run_.finish_if_done(out);
    case Departures::AfterStopped::left:
      admission_.begin_if_gathered(out);
      start_ready(out);
      run_.fail_if_alone(job_->stages->lead_of(worker), out);
      samples_came_back(out);
      run_.finish_if_done(out);
      admission_.open_barriers(out);
  }
}

void Scheduler::lease(WorkerId lead, const msg::WantLease& want, Outbox& out) {
  if (const std::uint32_t stage = job_->stages->stage_of(lead); stage > 0)
    return refuse_malformed(
        address_of(lead), want.next,
        concat("want lease: worker ", lead, " is not the first of its ",
               job_->stages->piped() ? "pipeline" : "host group", ", which asks for all"),
        out);
  if (roster_.at(lead).state != State::running) return;
  // It has leases for all iterations before that, or was started there.
  if (want.next > leases_.farthest(roster_.at(lead)))
    return refuse_malformed(address_of(lead), want.next,
                            concat("want lease: no lease has come near iteration ", want.next),
                            out);
  leases_.confirm(lead, want.clock, out);
  leases_.measured(lead, want);
  bound_.measured(lead, want, out);
  leases_.withdraw(lead);
  if (run_.is_training() && leases_.answer(lead, want, out)) snapshots_.start_if_due(out);
}

void Scheduler::idle(WorkerId worker, const msg::Idle& sent, Outbox& out) {
  if (!departures_.idle(worker, sent, out)) return;
  samples_came_back(out);
  run_.finish_if_done(out);
  admission_.open_barriers(out);
}

void Scheduler::diverged(WorkerId worker, const msg::Diverged& sent, Outbox& out) {
  checkpoints_.spoil("the loss was not finite any more");
  run_.stop_without_checkpoint(
      msg::RunEnded::Reason::failed,
      concat(job_->stages->name_of(worker), ": the loss became ",
             std::isnan(sent.loss) ? "NaN" : "infinite", " in iteration ", sent.iteration,
             ", first seen at ", sent.layer, "; lower the learning rate (--lr",
             job_->local_optimizer ? ", or --outer-lr" : "",
             ") or the staleness, or look at the data"),
      out);
}

void Scheduler::evaluated(const msg::Evaluated& sent, Outbox& out) {
  snapshots_.evaluated(sent.snapshot);
  const double target = job_->plan.stop.accuracy;
  if (target > 0 && sent.accuracy >= target)
    run_.stop(msg::RunEnded::Reason::target_reached,
              concat("reached a test accuracy of ", sent.accuracy), out);
}

void Scheduler::interrupt(Outbox& out) {
  if (!run_.interrupt(out)) return;
  out.after(kInterruptLimit, kInterruptTimer);
  snapshot_if_due(out);
}

void Scheduler::snapshot_if_due(Outbox& out) {
  if (run_.is_training()) snapshots_.start_if_due(out);
}

void Scheduler::start_ready(Outbox& out) {
  admission_.start_ready(out);
  if (leases_.has_waiting()) samples_came_back(out);  // shares of rounds before a start may have
}

void Scheduler::samples_came_back(Outbox& out) {
  if (!run_.is_training()) return;
  for (const auto& [lead, want] : leases_.take_waiting()) lease(lead, want, out);
  if (!leases_.any_for_idle()) return;
  for (const WorkerId lead : roster_.in({State::idle}))
    if (!roster_.at(lead).leaving() && roster_.at(lead).barrier == 0) admission_.admit(lead, out);
}

}  // namespace leeway
