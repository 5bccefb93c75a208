#include "actors/monitor/monitor.hpp"

#include <algorithm>
#include <limits>

#include "checkpoint/store.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr Duration kProgressInterval = milliseconds(200);
constexpr std::uint64_t kFinalState = 0;

/// `by_pair`: the waits of workers for others of their host groups.
std::vector<WaitTotals> total_waits(const std::vector<msg::ShardReport>& shards,
                                    std::map<std::pair<WorkerId, WorkerId>, WaitTotals> by_pair) {
  for (const auto& shard : shards) {
    for (const auto& wait : shard.waits) {
      auto& total = by_pair[{wait.worker, wait.for_worker}];
      total.worker = wait.worker;
      total.for_worker = wait.for_worker;
      // All shards park a worker's pull at the same time: it waited for the longest of these.
      total.time = std::max(total.time, wait.time);
      total.count = std::max(total.count, wait.count);
    }
  }
  std::vector<WaitTotals> waits;
  for (const auto& [pair, total] : by_pair) waits.push_back(total);
  std::stable_sort(waits.begin(), waits.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  return waits;
}

}  // namespace

Monitor::Monitor(std::shared_ptr<const Job> job, std::vector<Audience*> audience)
    : job_(std::move(job)),
      audience_(std::move(audience)),
      workers_(job_->plan.workers),
      last_seen_(job_->plan.workers),
      shards_(job_->layout->shards()) {
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard)
    channels_.emplace_back(address_of(ShardId(shard)));
  // Until the scheduler's first report: the counts of a resumed run must not begin at 0.
  if (job_->resumed)
    scheduler_.samples_trained = checkpoint::samples_trained(job_->resumed->manifest);
}

void Monitor::on_start(Outbox& out) {
  out.watch(kScheduler);
  out.after(kProgressInterval, 0);
}

void Monitor::on_timer(TimerToken, Outbox& out) {
  if (ended_) return;
  const auto progress = take_progress(out);
  for (auto* listener : audience_) listener->progress(progress);
  for (Channel& shard : channels_) shard.acknowledge(out);
  out.after(kProgressInterval, 0);
}

void Monitor::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  auto& body = envelope.body;
  if (from.kind == RoleKind::shard && from.index < shards_.size() &&
      !channels_[from.index].receive(envelope))
    return;
  if (const auto* report = std::get_if<msg::WorkerReport>(&body);
      report && from.kind == RoleKind::worker && from.index < workers_.size()) {
    auto& heard = last_seen_[from.index].heard;
    heard = std::max(heard, envelope.session);
    handle(WorkerId(from.index), *report);
    report_if_back(WorkerId(from.index));
  } else if (auto* shard = std::get_if<msg::ShardReport>(&body);
             shard && from.kind == RoleKind::shard && from.index < shards_.size()) {
    shards_[from.index] = std::move(*shard);
  } else if (auto* state = std::get_if<msg::SnapshotState>(&body);
             state && from.kind == RoleKind::shard && from.index < shards_.size()) {
    handle(from, *state, out);
  } else if (const auto* report_of_scheduler = std::get_if<msg::SchedulerReport>(&body);
             report_of_scheduler && from == kScheduler) {
    scheduler_ = *report_of_scheduler;
  } else if (const auto* evicted = std::get_if<msg::Evicted>(&body);
             evicted && from == kScheduler && evicted->worker.value() < workers_.size()) {
    auto& totals = workers_[evicted->worker.value()];
    totals.end = evicted->reason;
    totals.rejoined = evicted->rejoined ? std::optional(evicted->ended) : std::nullopt;
    totals.back = false;
    last_seen_[evicted->worker.value()].evicted = envelope.session;
    for (auto* listener : audience_) listener->evicted(evicted->worker, *evicted);
    report_if_back(evicted->worker);
  } else if (const auto* written = std::get_if<msg::Checkpointed>(&body);
             written && from == kScheduler) {
    checkpoints_.push_back(
        {out.now(), written->number, written->samples_trained, written->bytes, written->error});
    for (auto* listener : audience_) listener->checkpointed(checkpoints_.back());
  } else if (const auto* changed = std::get_if<msg::ReplicasChanged>(&body);
             changed && from == kScheduler) {
    if (changed->change == msg::ReplicasChanged::Change::shard_lost)
      return lose(changed->reason, out);
    for (auto* listener : audience_) listener->replicas_changed(*changed);
  } else if (const auto* moved = std::get_if<msg::BoundMoved>(&body); moved && from == kScheduler) {
    for (auto* listener : audience_) listener->bound_moved(*moved);
  } else if (const auto* end = std::get_if<msg::RunEnded>(&body); end && from == kScheduler) {
    end_ = *end;
    ended_at_ = out.now();
    end_if_complete(out);
  } else if (!std::holds_alternative<msg::Refused>(body)) {
    refuse_malformed(from, {},
                     concat("a ", name_of(body), " from ", from, " is not for the monitor"), out);
  }
}

void Monitor::handle(WorkerId worker, const msg::WorkerReport& report) {
  add_work(workers_[worker.value()], report);
  for (const msg::Wait& wait : report.group_waits) {
    auto& total = group_waits_[{worker, wait.for_worker}];
    total.worker = worker;
    total.for_worker = wait.for_worker;
    total.time += wait.time;
    total.count += wait.count;
  }
  loss_sum_ += report.loss_sum;
  loss_samples_ += report.samples;
  correct_ += report.correct;
  stage_bytes_ += report.stage_bytes;
  plain_stage_bytes_ += report.plain_stage_bytes;
}

void Monitor::report_if_back(WorkerId worker) {
  auto& totals = workers_[worker.value()];
  const auto& seen = last_seen_[worker.value()];
  if (totals.end.empty() || totals.back || seen.heard <= seen.evicted) return;
  totals.back = true;
  for (auto* listener : audience_) listener->came_back(worker);
}

Progress Monitor::take_progress(Outbox& out) {
  Progress progress;
  progress.now = out.now();
  progress.epoch = scheduler_.epoch;
  progress.samples_trained = scheduler_.samples_trained;
  progress.partial_pushes = scheduler_.partial_pushes;
  progress.live_workers = scheduler_.live_workers;
  progress.staleness = scheduler_.staleness;
  progress.malformed = malformed();
  if (job_->resumed) {
    progress.iterations = job_->resumed->manifest.scheduler.supply.iterations;
    progress.samples = checkpoint::samples_trained(job_->resumed->manifest);
  }
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (job_->stages->counts_iterations(WorkerId(i))) progress.iterations += workers_[i].iterations;
    if (job_->stages->counts_samples(WorkerId(i))) progress.samples += workers_[i].samples;
  }
  progress.stage_bytes = stage_bytes_;
  progress.plain_stage_bytes = plain_stage_bytes_;
  for (const auto& shard : shards_) {
    progress.clock_gap = std::max(progress.clock_gap, shard.max_clock - shard.min_clock);
    progress.max_clock_gap = std::max(progress.max_clock_gap, shard.max_clock_gap);
    progress.parked_now = std::max(progress.parked_now, shard.parked_now);
    progress.parked_pulls += shard.parked_pulls;
    progress.push_bytes += shard.push_bytes;
    progress.plain_push_bytes += shard.plain_push_bytes;
    progress.pull_bytes += shard.pull_bytes;
    progress.plain_pull_bytes += shard.plain_pull_bytes;
    progress.kept_bytes += shard.kept_bytes;
    if (shard.loss_scale > 0 &&
        (progress.loss_scale == 0 || shard.loss_scale < progress.loss_scale))
      progress.loss_scale = shard.loss_scale;
    progress.skipped_updates = std::max(progress.skipped_updates, shard.skipped_updates);
    progress.malformed += shard.malformed;
    progress.refused += shard.refused;
  }
  const double samples = loss_samples_ > 0 ? static_cast<double>(loss_samples_)
                                           : std::numeric_limits<double>::quiet_NaN();
  progress.train_loss = loss_sum_ / samples;
  progress.train_accuracy = static_cast<double>(correct_) /
                            (samples * static_cast<double>(job_->data.train->label_count()));
  loss_sum_ = 0;
  loss_samples_ = correct_ = 0;
  return progress;
}

void Monitor::handle(Address from, msg::SnapshotState& state, Outbox& out) {
  if (!state.final && state.snapshot == kFinalState)
    return refuse_malformed(from, state.iteration, "snapshot: 0 is the final state's", out);
  if (!state.final) {
    // Not all shards have accepted an earlier proposal.
    if (state.snapshot < newest_snapshot_) return;
    newest_snapshot_ = state.snapshot;
    gathering_.erase(gathering_.upper_bound(kFinalState), gathering_.lower_bound(state.snapshot));
  }
  const auto [found, fresh] = gathering_.try_emplace(state.final ? kFinalState : state.snapshot);
  auto& gathering = found->second;
  if (fresh)
    gathering = {std::vector<Blob>(job_->layout->blocks().size()),
                 std::vector<bool>(shards_.size()), shards_.size(), state.iteration, state.final};
  // An evaluation reads every block of the shard: each must be there once.
  const auto owed = job_->layout->blocks_of(ShardId(from.index)).size();
  if (gathering.arrived[from.index] || state.blocks.size() != owed)
    return refuse_malformed(
        from, state.iteration,
        concat("snapshot: ", state.blocks.size(), " blocks, expected ", owed, " once"), out);
  auto weights = gathering.weights;
  for (auto& block : state.blocks) {
    const bool fits = block.block.value() < weights.size() && !weights[block.block.value()] &&
                      block.dtype == DType::f32 &&
                      job_->layout->block(block.block).shard == ShardId(from.index) &&
                      block.shape.count() == job_->layout->block(block.block).floats;
    if (!fits)
      return refuse_malformed(from, state.iteration,
                              concat("snapshot: block ", block.block, " does not fit"), out);
    weights[block.block.value()] = std::move(block.data);
  }
  gathering.weights = std::move(weights);
  gathering.arrived[from.index] = true;
  if (--gathering.missing > 0) return;
  if (gathering.final) final_weights_ = gathering.weights;
  evaluations_.push_back(std::make_shared<Evaluation>(job_, found->first, gathering.iteration,
                                                      std::move(gathering.weights)));
  gathering_.erase(found);
  if (evaluations_.size() == 1) evaluate_next(out);
}

void Monitor::evaluate_next(Outbox& out) {
  out.compute(evaluations_.front());
}

void Monitor::on_part(Work& work, int part, Outbox& out) {
  if (part + 1 < work.parts()) return;
  const auto evaluation = evaluations_.front();
  evaluations_.pop_front();
  const bool final = evaluation->snapshot() == kFinalState;
  EvaluationResult result{
      out.now(), scheduler_.samples_trained, evaluation->loss(), evaluation->accuracy(),
      final,     evaluation->error()};
  if (result.error.empty())
    results_.push_back(result);
  else
    result.loss = result.accuracy = std::numeric_limits<double>::quiet_NaN();
  for (auto* listener : audience_) listener->evaluated(result);
  if (!final) {
    out.send(
        kScheduler,
        encode({.body = msg::Evaluated{evaluation->snapshot(), result.loss, result.accuracy}}));
    last_snapshot_ = evaluation->weights();
    last_snapshot_iteration_ = evaluation->iteration();
  }
  final_evaluated_ |= final;
  if (!evaluations_.empty()) evaluate_next(out);
  end_if_complete(out);
}

void Monitor::on_down(Address actor, const EndReason& reason, Outbox& out) {
  if (actor == kScheduler && !end_) {
    end_ =
        msg::RunEnded{msg::RunEnded::Reason::failed, concat("the scheduler ended: ", reason.text),
                      scheduler_.samples_trained, scheduler_.partial_pushes};
    ended_at_ = out.now();
  }
  // Only the scheduler asks for the final state.
  lose(concat(actor, " ended: ", reason.text), out);
}

void Monitor::lose(const std::string& reason, Outbox& out) {
  if (lost_.empty()) lost_ = reason;
  end_if_complete(out);
}

void Monitor::end_if_complete(Outbox& out) {
  const bool no_weights = final_weights_.empty();
  if (ended_ || !end_ || !(final_evaluated_ || (no_weights && !lost_.empty()))) return;
  ended_ = true;
  if (no_weights && end_->reason != msg::RunEnded::Reason::failed) {
    end_->reason = msg::RunEnded::Reason::failed;
    end_->text = concat("the final weights are lost, because ", lost_);
  }
  RunTotals totals;
  scheduler_.samples_trained = end_->samples_trained;
  scheduler_.partial_pushes = end_->partial_pushes;
  totals.last = take_progress(out);
  totals.last.now = ended_at_;  // without the time of the last evaluation
  totals.end = *end_;
  totals.workers = workers_;
  totals.waits = total_waits(shards_, group_waits_);
  totals.version_lags.assign(limits::kLagBins, 0);
  for (const auto& shard : shards_)
    for (std::size_t lag = 0; lag < shard.lags.size(); ++lag)
      totals.version_lags[lag] += shard.lags[lag];
  totals.evaluations = results_;
  totals.checkpoints = checkpoints_;
  totals.weights = final_weights_;
  totals.last_snapshot = last_snapshot_;
  totals.last_snapshot_iteration = last_snapshot_iteration_;
  for (auto* listener : audience_) listener->ended(totals);
}

}  // namespace leeway
