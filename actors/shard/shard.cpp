#include "actors/shard/shard.hpp"

#include <algorithm>
#include <utility>

#include "actors/shard/measure_work.hpp"
#include "actors/shard/push_check.hpp"
#include "actors/shard/store_work.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr Duration kShardReportInterval = milliseconds(200);
constexpr TimerToken kReportTimer = 0, kApplyTimer = 1;

std::unique_ptr<RoundNorms> make_norms(const Job& job, ShardId id) {
  if (!job.clips_rounds()) return nullptr;
  return std::make_unique<RoundNorms>(id, job.plan.shards, job.shard_settings.clip_norm);
}

std::unique_ptr<LossScale> make_loss_scale(const Job& job) {
  if (!job.scales_losses) return nullptr;
  const bool by_rounds = job.consistency->by_rounds();
  LossScale::State first{by_rounds ? job.first_iteration() : Iteration(),
                         static_cast<float>(job.plan.loss_scale), 0};
  if (job.resumed && job.resumed->manifest.loss_scale > 0) {
    first.scale = job.resumed->manifest.loss_scale;
    if (by_rounds) first.since = std::min(first.since, job.resumed->manifest.loss_scale_since);
  }
  return std::make_unique<LossScale>(by_rounds, first);
}

std::unique_ptr<OpenPulls> make_open_pulls(const Job& job, ShardId id) {
  const auto limit = job.delay_policy ? job.delay_policy->lag_limit() : std::nullopt;
  return limit && id == ShardId(0) ? std::make_unique<OpenPulls>(*limit) : nullptr;
}

}  // namespace

Shard::Shard(std::shared_ptr<const Job> job, ShardId id, FirstState first)
    : job_(std::move(job)),
      id_(id),
      buckets_(job_, id_, first),
      tied_(*job_->stages, id_, buckets_.size(), clocks_),
      gate_(job_->first_bound(), clocks_, tied_),
      answers_(job_, buckets_, clocks_, report_),
      snapshots_(job_, id_, buckets_, clocks_, scheduler_, monitor_),
      acknowledgements_(clocks_),
      norms_(make_norms(*job_, id_)),
      loss_scale_(make_loss_scale(*job_)),
      open_pulls_(make_open_pulls(*job_, id_)),
      updates_(buckets_, snapshots_, acknowledgements_, norms_.get(), loss_scale_.get()),
      apply_(make_apply_policy(*job_->consistency, id_, kApplyTimer, clocks_, tied_, updates_,
                               scheduler_)) {
  report_.lags.assign(limits::kLagBins, 0);
  if (!job_->resumed) return;
  Iteration least = job_->first_iteration();
  for (std::uint32_t pipeline = 0; pipeline < job_->stages->pipelines(); ++pipeline)
    least = std::min(least, job_->first_iteration(pipeline));
  clocks_.resume(Clock(least.value()));
}

void Shard::on_start(Outbox& out) {
  out.after(kShardReportInterval, kReportTimer);
}

void Shard::on_timer(TimerToken token, Outbox& out) {
  if (finished_) return;
  if (token == kApplyTimer) return apply_->on_timer(out);
  report(out);
  scheduler_.acknowledge(out);
  if (norms_) norms_->ask(out);
  out.after(kShardReportInterval, kReportTimer);
}

void Shard::on_link(Address peer, Outbox& out) {
  if (peer == kScheduler) scheduler_.send_again(out);
  if (peer == kMonitor) monitor_.send_again(out);
  if (open_pulls_ && peer.kind == RoleKind::worker)
    for (const OpenPulls::Pull& pull : open_pulls_->outdated(WorkerId(peer.index)))
      send_outdated(pull, out);
}

void Shard::on_part(Work& work, int part, Outbox& out) {
  if (part + 1 < work.parts()) return;
  if (auto* stored = dynamic_cast<StoreWork*>(&work)) return send_stored(*stored, out);
  if (const auto* measured = dynamic_cast<const MeasureWork*>(&work)) {
    const UpdateWork& update = measured->update();
    norms_->measured(update.round(), buckets_.measured(work), update.squares(), out);
    return run_scaled(out);
  }
  const auto [bucket, applied] = buckets_.finish(work);
  for (const auto lag : applied.version_lags)
    ++report_.lags[std::min(static_cast<std::size_t>(lag), limits::kLagBins - 1)];
  for (const auto& push : applied.contributions) acknowledgements_.applied(push, out);
  buckets_.run(bucket, out);
  answers_.send_complete(out);
  finish_if_drained(out);
}

void Shard::send_stored(StoreWork& stored, Outbox& out) {
  msg::Stored answer = stored.take_answer();
  if (loss_scale_) {
    const LossScale::State scale = loss_scale_->state_at(stored.iteration());
    answer.loss_scale = scale.scale;
    answer.loss_scale_since = scale.since;
  }
  scheduler_.send(std::move(answer), out);
}

void Shard::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  if (auto* pull = std::get_if<msg::Pull>(&envelope.body)) {
    handle(from, envelope, *pull, out);
  } else if (auto* push = std::get_if<msg::Push>(&envelope.body)) {
    handle(from, envelope, *push, out);
  } else if (const auto* part = std::get_if<msg::RoundNorm>(&envelope.body)) {
    handle(from, *part, out);
  } else if (from == kScheduler) {
    if (scheduler_.receive(envelope)) on_order(envelope.body, out);
  } else if (from == kMonitor && std::holds_alternative<msg::Received>(envelope.body)) {
    monitor_.receive(envelope);
  } else if (!std::holds_alternative<msg::Refused>(envelope.body)) {
    refuse_malformed(from, {},
                     concat(address_of(id_), ": a ", name_of(envelope.body),
                            " is not for a shard, or not from ", from),
                     out);
  }
}

void Shard::on_order(Body& body, Outbox& out) {
  if (auto* admit = std::get_if<msg::Admit>(&body)) {
    handle(*admit, out);
  } else if (auto* raise = std::get_if<msg::Raise>(&body)) {
    handle(*raise, out);
  } else if (auto* fence = std::get_if<msg::Fence>(&body)) {
    handle(*fence, out);
  } else if (auto* remove = std::get_if<msg::Remove>(&body)) {
    handle(*remove, out);
  } else if (auto* bound = std::get_if<msg::Bound>(&body)) {
    handle(*bound, out);
  } else if (auto* close = std::get_if<msg::CloseRound>(&body)) {
    handle(*close, out);
  } else if (auto* end = std::get_if<msg::EndGrace>(&body)) {
    handle(*end, out);
  } else if (auto* snapshot = std::get_if<msg::Snapshot>(&body)) {
    // That of the last checkpoint. Some rounds stay incomplete because their other workers were
    // lost; the scheduler has counted their pushes.
    if (snapshot->immediate) apply_rest(out);
    if (const Status valid = snapshots_.handle(*snapshot, out); !valid)
      refuse_malformed(kScheduler, {}, concat("snapshot: ", valid.error().text), out);
  } else if (auto* finish = std::get_if<msg::Finish>(&body)) {
    handle(*finish, out);
  } else if (!std::holds_alternative<msg::Received>(body)) {
    refuse_malformed(kScheduler, {}, concat("a ", name_of(body), " is not for a shard"), out);
  }
}

// ---- pulls and pushes ----

bool Shard::admits(Address from, Session session, Iteration iteration, std::string_view verb,
                   Outbox& out) {
  if (from.kind != RoleKind::worker) {
    refuse_malformed(from, iteration, concat("only workers ", verb), out);
    return false;
  }
  if (clocks_.may_push(WorkerId(from.index), session)) return true;
  refuse(from, session, msg::Refused::Reason::unknown_worker, iteration,
         "not admitted here, or evicted", out);
  return false;
}

void Shard::handle(Address from, const Envelope& envelope, const msg::Pull& pull, Outbox& out) {
  if (!admits(from, envelope.session, pull.iteration, "pull", out)) return;
  if (pull.dtype != DType::f32)
    return refuse_malformed(from, pull.iteration,
                            concat("weights are f32 here, not ", name_of(pull.dtype)), out);
  ++report_.pulls;
  const WorkerId worker(from.index);
  const ParkedPull pending{worker, pull, out.now()};
  if (gate_.is_allowed(worker, pull.iteration, pull.own_clock)) return answer(pending, out);
  switch (gate_.park(pending)) {
    case PullGate::Parking::parked:
      ++report_.parked_pulls;
      return out.emit(event::PullParked{worker, pull.iteration, clocks_.min_clock()});
    case PullGate::Parking::refused:
      return refuse_malformed(from, pull.iteration,
                              concat("has ", limits::kMaxPullsPerWorker, " pulls parked already"),
                              out);
    case PullGate::Parking::repeat:
      return;
  }
}

void Shard::answer(const ParkedPull& pull, Outbox& out) {
  gate_.answered(pull.pull.iteration);
  if (open_pulls_) open_pulls_->answered({pull.worker, pull.pull.iteration});
  out.emit(event::PullAnswered{.worker = pull.worker,
                               .iteration = pull.pull.iteration,
                               .min_clock = clocks_.min_clock(),
                               .clock = clocks_.find(pull.worker)->clock});
  const float loss_scale = loss_scale_ ? loss_scale_->at(pull.pull.iteration) : 0;
  answers_.begin(pull.worker, pull.pull, loss_scale, share_of(pull.worker).shard_buckets, out);
}

void Shard::release_pulls(std::optional<WorkerId> mover, Outbox& out) {
  for (const auto& pull : gate_.release(mover, out.now())) {
    if (mover) out.emit(event::PullReleased{pull.worker, pull.pull.iteration, *mover});
    answer(pull, out);
  }
}

Status Shard::validate(WorkerId worker, const msg::Push& push) const {
  if (auto valid = validate_push(push, share_of(worker), *job_); !valid) return valid;
  if (push.scale != 1 && (!job_->clips_pushes() || job_->push_codecs))
    return Error{
        concat("scale is ", push.scale, ", but the shard scales no gradients in this run")};
  const Clock clock = clocks_.find(worker)->clock;
  if (push.iteration.value() != clock.value() || gate_.is_allowed(worker, push.iteration, clock))
    return {};
  if (const Clock common = tied_.common_clock(worker); common < clock)
    return Error{concat("iteration ", push.iteration,
                        " may not have started: a stage that shares a block with it has pushed ",
                        common)};
  return Error{concat("iteration ", push.iteration, " may not have started, min_clock is ",
                      clocks_.min_clock())};
}

void Shard::handle(Address from, const Envelope& envelope, msg::Push& push, Outbox& out) {
  if (!admits(from, envelope.session, push.iteration, "push", out)) return;
  const WorkerId worker(from.index);
  if (auto valid = validate(worker, push); !valid)
    return refuse_malformed(from, push.iteration, concat("push: ", valid.error().text), out);
  ++report_.pushes;
  for (const msg::BlockData& block : push.blocks) {
    if (!block.data) continue;
    report_.push_bytes += block.data.size();
    report_.plain_push_bytes += static_cast<std::uint64_t>(block.shape.count()) * sizeof(float);
  }
  const std::uint32_t shard_bucket = share_of(worker).shard_buckets[push.bucket];
  const auto& owners = job_->stages->owners(id_, shard_bucket);
  Contribution contribution{.worker = worker,
                            .session = envelope.session,
                            .iteration = push.iteration,
                            .bucket = push.bucket,
                            .shard_bucket = shard_bucket,
                            .weight = push.weight,
                            .samples = push.samples,
                            .scale = push.scale,
                            .first_owner = owners.front() == job_->stages->stage_of(worker),
                            .owners = static_cast<std::uint32_t>(owners.size()),
                            .blocks = std::move(push.blocks),
                            .assigned = std::move(push.assigned)};
  contribution.overflowed = push.kind == msg::Push::Kind::overflow;
  contribution.loss_scale = push.loss_scale;
  if (push.kind == msg::Push::Kind::empty) contribution.blocks.clear();
  switch (clocks_.accept(worker, push.iteration, push.bucket, push.bucket_count)) {
    case ClockTable::Verdict::accepted:
      snapshots_.accepted(contribution);
      acknowledgements_.expect(contribution);
      if (open_pulls_) open_pulls_->pushed({worker, push.iteration});
      if (loss_scale_) loss_scale_->pushed(push.weight / push.bucket_count);
      if (const auto mover = apply_->take(std::move(contribution), out)) {
        count_progress(push.weight, out);
        clocks_changed(*mover, out);
      }
      return;
    case ClockTable::Verdict::gap:
      return refuse(from, envelope.session, msg::Refused::Reason::gap, push.iteration,
                    concat("expected iteration ", clocks_.find(worker)->clock), out);
    case ClockTable::Verdict::repeat:
      ++report_.repeats;
      out.emit(event::BucketRepeated{worker, push.iteration, push.bucket});
      if (acknowledgements_.is_expected(contribution) && !planted(Mutant::acknowledged_too_early))
        return;
      if (job_->consistency->round_size().drops() &&
          !clocks_.has_contributed(worker, push.iteration))
        acknowledgements_.dropped(contribution, out);
      else
        acknowledgements_.repeated(contribution, out);
  }
}

void Shard::count_progress(double weight, Outbox& out) {
  if (!open_pulls_) return;
  const bool counts_updates = job_->plan.optimizer.whole_steps;
  open_pulls_->advance(counts_updates && weight > 0 ? 1 : weight);
  // A snapshot waits for the iterations of all workers.
  if (snapshots_.is_pending()) return;
  for (const OpenPulls::Pull& pull : open_pulls_->take_outdated()) send_outdated(pull, out);
}

void Shard::send_outdated(const OpenPulls::Pull& pull, Outbox& out) {
  const Session session = clocks_.find(pull.worker)->session;
  if (!clocks_.may_push(pull.worker, session)) return;
  out.send(address_of(pull.worker),
           encode({.session = session, .body = msg::Outdated{pull.iteration}}));
}

void Shard::clocks_changed(WorkerId mover, Outbox& out) {
  apply_->apply_complete(out);
  if (norms_) norms_->passed(Iteration(clocks_.min_clock().value()), out);
  run_scaled(out);
  gate_.forget_passed_bounds();
  release_pulls(mover, out);
  snapshots_.collect_complete(out);
  apply_->propose(out);
}

void Shard::handle(Address from, const msg::RoundNorm& part, Outbox& out) {
  if (!norms_ || from.kind != RoleKind::shard || from.index >= job_->plan.shards ||
      from.index == id_.value())
    return refuse_malformed(
        from, part.round, concat(address_of(id_), ": no norm of a round is due from ", from), out);
  norms_->received(ShardId(from.index), part, out);
  run_scaled(out);
}

void Shard::run_scaled(Outbox& out) {
  if (!norms_) return;
  for (const auto& [bucket, scale] : norms_->take_ready()) buckets_.run_scaled(bucket, scale, out);
}

}  // namespace leeway
