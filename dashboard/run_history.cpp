#include "dashboard/run_history.hpp"

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "messages/event_queries.hpp"
#include "plan/groups.hpp"
#include "policies/consistency/consistency.hpp"

namespace leeway::dashboard {
namespace {

/// The number of iterations that an answered pull is ahead of the slowest worker. A parked pull is
/// ahead by more than the bound allows, and has no lead: it is not answered yet.
std::int32_t lead_of(const event::PullAnswered& pull) {
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(pull.iteration.value() - pull.min_clock.value(), 0, kMost));
}

}  // namespace

RunInfo info_of(const Plan& plan, std::string policy, std::int64_t bound) {
  RunInfo info{.name = plan.name,
               .policy = std::move(policy),
               .checkers = plan.simulated ? "all checkers on" : "",
               .workers = std::max(plan.workers, 1u),
               .shards = std::max(plan.shards, 1u),
               .stages = std::max(plan.pipeline.stages, 1u),
               .batch = plan.batch,
               .group = workers_per_group(plan),
               .seed = plan.seed};
  if (bound != kUnbounded) info.bound = static_cast<std::uint32_t>(bound);
  return info;
}

RunHistory::RunHistory(RunInfo info)
    : info_(std::move(info)),
      intervals_(info_.workers, std::min<std::size_t>(info_.workers, kMostRows)),
      waits_([this](const blame::Wait& wait) {
        waited(wait.worker, wait.cause, (wait.begin - Instant()).seconds(),
               (wait.end - Instant()).seconds());
      }),
      bound_(info_.bound),
      leads_by_row_(std::min<std::size_t>(info_.workers, kMostRows)),
      leads_by_shard_(std::min<std::size_t>(info_.shards, kMostShards)),
      workers_(info_.workers) {
  latest_.epoch = Epoch(0);
}

std::string RunHistory::name_of_row(std::size_t row) const {
  const std::size_t first = first_of_row(row), last = first_of_row(row + 1) - 1;
  return first == last ? concat("worker ", first) : concat("workers ", first, '-', last);
}

// ---- events ----

void RunHistory::event(Address actor, Instant at_instant, const Event& event) {
  const double now = (at_instant - Instant()).seconds();
  // A malformed event names a worker that the run does not have.
  if (const auto worker = worker_of(event); worker && worker->value() >= info_.workers) return;
  ++revision_;
  now_ = std::max(now_, now);
  waits_.handle(actor, at_instant, event);
  if (const auto* step = event.as<event::StepStarted>()) {
    has_begun_ = true;
    WorkerState& worker = workers_[step->worker.value()];
    end_step(step->worker.value(), now);
    at(now);
    // A report of the monitor may have come before this event; viewers have these intervals.
    intervals_.spread(now, now_, revision_, [](Interval&, double) {});
    worker.computing_since = now;
    // Shards know only the clock of a host group's lead.
    if (step->group_index > 0) worker.clock = std::max(worker.clock, step->iteration.value());
  } else if (const auto* done = event.as<event::StepFinished>()) {
    WorkerState& worker = workers_[done->worker.value()];
    // The operations of a stage count its computing time.
    if (worker.computing_since && info_.stages == 1) computed(*worker.computing_since, now);
    end_step(done->worker.value(), now);
    if (done->samples == 0) return;
    Interval& interval = at(now);
    if (done->worker.value() % info_.group == 0) ++interval.iterations;
    if ((done->worker.value() + 1) % info_.stages != 0) return;  // the last stage counts
    interval.samples += static_cast<std::uint64_t>(done->samples);
    samples_ += static_cast<std::uint64_t>(done->samples);
    if (done->worker.value() % info_.group == 0) ++iterations_;
  } else if (const auto* pull = event.as<event::PullAnswered>()) {
    answered(actor, *pull, now);
  } else if (const auto* pulled = event.as<event::PullParked>()) {
    parked_[{pulled->worker, actor}] = now;
    ++at(now).parked[row_of(pulled->worker.value())];
  } else if (const auto* update = event.as<event::BucketApplied>()) {
    if (update->samples == 0) return;
    Interval& interval = at(now);
    ++interval.updates;
    interval.contributing[update->worker.value()] = true;
  } else if (const auto* moved = event.as<event::ClockMoved>()) {
    std::int64_t& clock = workers_[moved->worker.value()].clock;
    clock = std::max(clock, moved->clock.value());
  } else if (const auto* operation = event.as<event::StageComputed>()) {
    stage_computed(*operation, now);
  } else {
    membership(event, now);
  }
}

void RunHistory::membership(const Event& event, double now) {
  if (const auto* admitted = event.as<event::Admitted>()) {
    WorkerState& worker = workers_[admitted->worker.value()];
    const bool is_back = std::exchange(worker.was_evicted, false);
    const bool is_new = !worker.alive && admitted->worker.value() % info_.stages == 0;
    worker.clock = std::max(worker.clock, admitted->iteration.value());
    set_alive(admitted->worker, info_.group, true, now);
    if (is_new && is_back)
      mark(now, "returned", concat("worker ", admitted->worker, " has returned"));
    else if (is_new && has_begun_)
      mark(now, "joined", concat("worker ", admitted->worker, " has joined"));
  } else if (const auto* evicted = event.as<event::Evicted>()) {
    const std::uint32_t workers = info_.stages * info_.group;
    set_alive(evicted->worker, workers, false, now);
    for (std::uint32_t i = 0; i < workers && evicted->worker.value() + i < info_.workers; ++i)
      workers_[evicted->worker.value() + i].was_evicted = true;
    mark(now, "evicted", concat("worker ", evicted->worker, " was evicted"));
  } else if (const auto* left = event.as<event::Left>()) {
    // The event may be repeated, and comes for each worker of a pipeline.
    const std::uint32_t workers = info_.stages * info_.group;
    const WorkerId first(left->worker.value() / workers * workers);
    if (workers_[first.value()].alive) mark(now, "left", concat("worker ", first, " has left"));
    set_alive(first, workers, false, now);
  } else if (const auto* bound = event.as<event::BoundChanged>()) {
    bound_ = bound->staleness;
    mark(now, "bound", concat("the staleness bound is ", bound->staleness));
  } else if (const auto* primary = event.as<event::PrimaryLost>()) {
    mark(now, "replica", concat("the primary of shard ", primary->shard, " was lost"));
  } else if (const auto* standby = event.as<event::StandbyLost>()) {
    mark(now, "replica", concat("the standby of shard ", standby->shard, " was lost"));
  } else if (const auto* next = event.as<event::StandbyTookOver>()) {
    mark(now, "replica", concat("the standby of shard ", next->shard, " has taken over"));
  } else if (const auto* written = event.as<event::CheckpointWritten>()) {
    mark(now, "checkpoint", concat("checkpoint ", written->number, " was written"));
  }
}

void RunHistory::set_alive(WorkerId first, std::uint32_t count, bool alive, double now) {
  for (std::uint32_t i = first.value(); i < first.value() + count && i < info_.workers; ++i) {
    if (workers_[i].alive == alive) continue;
    workers_[i].alive = alive;
    alive_ += alive ? 1 : -1;
    if (alive) continue;
    end_step(i, now);
    parked_.erase(parked_.lower_bound({WorkerId(i), Address{}}),
                  parked_.lower_bound({WorkerId(i + 1), Address{}}));
  }
  at(now).alive = alive_;
}

void RunHistory::answered(Address shard, const event::PullAnswered& pull, double now) {
  parked_.erase({pull.worker, shard});
  const std::int32_t lead = lead_of(pull);
  const std::size_t row = row_of(pull.worker.value());
  const std::size_t bin = std::min<std::size_t>(static_cast<std::size_t>(lead), kLeads - 1);
  Interval& interval = at(now);
  ++interval.leads[bin];
  interval.lead[row] = std::max(interval.lead[row], lead);
  ++leads_by_row_[row][bin];
  if (shard.index < leads_by_shard_.size()) ++leads_by_shard_[shard.index][bin];
}

void RunHistory::add_cause(const blame::Cause& cause, double seconds) {
  causes_[cause] += seconds;
  wait_ += seconds;
  if (!cause_index_.try_emplace(cause, known_causes_.size()).second) return;
  known_causes_.push_back(cause);
  known_causes_changed_ = revision_;
}

void RunHistory::waited(std::size_t worker, const blame::Cause& cause, double begin, double end) {
  const double seconds = end - begin;
  add_cause(cause, seconds);
  intervals_.spread(begin, end, revision_, [&](Interval& interval, double share) {
    interval.waits[{row_of(worker), cause}] += share * seconds;
    interval.trim();
  });
}

void RunHistory::computed(double begin, double end) {
  compute_ += end - begin;
  intervals_.spread(begin, end, revision_, [&](Interval& interval, double share) {
    interval.compute += share * (end - begin);
  });
}

void RunHistory::end_step(std::size_t worker, double now) {
  const auto since = std::exchange(workers_[worker].computing_since, std::nullopt);
  if (!since) return;
  at(*since).taking_part[worker] = true;
  intervals_.spread(*since, now, revision_,
                    [&](Interval& interval, double) { interval.taking_part[worker] = true; });
}

void RunHistory::stage_computed(const event::StageComputed& operation, double now) {
  if (operation.computed.ns == 0) return;  // the second event of a backward in one piece
  computed(now - operation.computed.seconds(), now);
  auto& sum =
      workers_[operation.worker.value()].operations[static_cast<std::size_t>(operation.operation)];
  sum.seconds += operation.computed.seconds();
  ++sum.count;
  operations_.push_back({operation, now});
  if (operations_.size() > kMostOperations) operations_.pop_front();
  operations_changed_ = revision_;
}

// ---- reports of the monitor ----

void RunHistory::progress(const Progress& progress) {
  ++revision_;
  const double now = (progress.now - Instant()).seconds();
  now_ = std::max(now_, now);
  const double before = std::min((latest_.now - Instant()).seconds(), now);
  sent(&Progress::push_bytes, &Interval::push_bytes, progress, before, now);
  sent(&Progress::pull_bytes, &Interval::pull_bytes, progress, before, now);
  sent(&Progress::stage_bytes, &Interval::stage_bytes, progress, before, now);
  Interval& interval = at(now);
  if (!info_.has_events) {
    interval.alive = progress.live_workers;
    interval.iterations += progress.iterations - std::min(latest_.iterations, progress.iterations);
    interval.samples += progress.samples - std::min(latest_.samples, progress.samples);
  }
  if (info_.has_losses && std::isfinite(progress.train_loss)) {
    add_point(train_,
              {now, progress.samples_trained, progress.train_loss, progress.train_accuracy});
    curves_changed_ = revision_;
  }
  latest_ = progress;
  if (progress.live_workers > 0) live_before_end_ = progress.live_workers;
}

void RunHistory::sent(std::uint64_t Progress::*total, std::uint64_t Interval::*part,
                      const Progress& progress, double begin, double end) {
  const std::uint64_t bytes = progress.*total - std::min(latest_.*total, progress.*total);
  if (bytes == 0) return;
  if (begin >= end) {
    at(end).*part += bytes;
    return;
  }
  double until = 0;  // share of the span
  std::uint64_t given = 0;
  intervals_.spread(begin, end, revision_, [&](Interval& interval, double share) {
    until += share;
    const auto sum =
        static_cast<std::uint64_t>(std::llround(std::min(until, 1.0) * static_cast<double>(bytes)));
    interval.*part += sum - given;
    given = sum;
  });
  at(end).*part += bytes - given;
}

void RunHistory::evaluated(const EvaluationResult& result) {
  ++revision_;
  const double now = (result.now - Instant()).seconds();
  now_ = std::max(now_, now);
  if (!result.error.empty()) return mark(now, "evaluated", "evaluation failed: " + result.error);
  if (!info_.has_losses) return;
  add_point(test_, {now, result.samples_trained, result.loss, result.accuracy});
  curves_changed_ = revision_;
}

void RunHistory::checkpointed(const CheckpointResult& result) {
  const double now = (result.now - Instant()).seconds();
  if (!result.error.empty())
    mark(now, "checkpoint",
         concat("checkpoint ", result.number, " was not written: ", result.error));
  else if (!info_.has_events)
    mark(now, "checkpoint", concat("checkpoint ", result.number, " was written"));
}

void RunHistory::add_point(std::vector<CurvePoint>& curve, const CurvePoint& point) {
  curve.push_back(point);
  if (curve.size() <= kMostPoints) return;
  // Halves the curve: keeps every second point and the last one.
  std::vector<CurvePoint> half;
  for (std::size_t i = 0; i < curve.size(); i += 2) half.push_back(curve[i]);
  if (curve.size() % 2 == 0) half.push_back(curve.back());
  curve = std::move(half);
}

void RunHistory::mark(double seconds, std::string kind, std::string text) {
  marks_changed_ = ++revision_;
  now_ = std::max(now_, seconds);
  // The first and the latest marks stay.
  if (marks_.size() == kMostMarks) marks_.erase(marks_.begin() + kMostMarks / 2);
  const auto next = std::ranges::upper_bound(marks_, seconds, {}, &Mark::seconds);
  marks_.insert(next, {seconds, std::move(kind), std::move(text)});
}

void RunHistory::explain_eviction(WorkerId worker, const std::string& reason, double seconds) {
  const std::string text = concat("worker ", worker, " was evicted");
  const std::string left = concat("worker ", worker, " has left");
  const auto found = std::ranges::find_if(
      marks_, [&](const Mark& mark) { return mark.text == text || mark.text == left; });
  if (found == marks_.end()) return mark(seconds, "evicted", concat(text, ": ", reason));
  found->text += ": " + reason;
  marks_changed_ = ++revision_;
}

void RunHistory::ended(double seconds, std::string reason, std::string text) {
  mark(seconds, "end", text.empty() ? reason : concat(reason, ": ", text));
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) end_step(worker, seconds);
  parked_.clear();
  // The time of a run ends before its last evaluation.
  now_ = seconds;
  for (CurvePoint& point : test_) point.seconds = std::min(point.seconds, seconds);
  curves_changed_ = revision_;
  intervals_.end_at(seconds, revision_);
  end_ = End{std::move(reason), std::move(text)};
}

void RunHistory::set_waits(const std::map<blame::Cause, double>& causes, double compute) {
  ++revision_;
  compute_ = compute;
  wait_ = 0;
  causes_.clear();
  for (const auto& [cause, seconds] : causes) add_cause(cause, seconds);
}

// ---- queries ----

std::uint32_t RunHistory::live_workers() const {
  if (!end_) return latest_.live_workers;
  if (info_.has_events) return alive_;
  return end_->reason == "failed" ? latest_.live_workers : live_before_end_;
}

std::size_t RunHistory::taking_part(std::size_t interval) const {
  const Interval& of = intervals_.all()[interval];
  const double end = static_cast<double>(interval + 1) * intervals_.width();
  std::size_t count = 0;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const auto& since = workers_[worker].computing_since;
    count += of.taking_part[worker] || (since && *since < end);
  }
  return count;
}

std::vector<ParkedPull> RunHistory::parked() const {
  std::map<WorkerId, double> since;  // the first shard that has parked it
  for (const auto& [key, seconds] : parked_) {
    const auto [found, is_new] = since.try_emplace(key.first, seconds);
    if (!is_new) found->second = std::min(found->second, seconds);
  }
  std::vector<ParkedPull> pulls;
  for (const auto& [worker, seconds] : since) pulls.push_back({worker, seconds});
  std::ranges::stable_sort(pulls, {}, &ParkedPull::since);
  return pulls;
}

WorkerId RunHistory::slowest() const {
  std::size_t slowest = 0;
  bool found = false;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (!workers_[worker].alive) continue;
    if (!found || workers_[worker].clock < workers_[slowest].clock) slowest = worker;
    found = true;
  }
  return WorkerId(static_cast<std::uint32_t>(slowest));
}

std::vector<double> RunHistory::slowness() const {
  const std::size_t stages = info_.stages, pipelines = info_.workers / stages;
  std::vector<double> ratios(info_.workers, 0);
  std::vector<int> kinds(info_.workers, 0);
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const auto mean = [&](std::size_t worker) {
      const auto& sum = workers_[worker].operations[kind];
      return sum.count == 0 ? 0 : sum.seconds / static_cast<double>(sum.count);
    };
    // The peers of a worker: its stage in all pipelines, or all stages of the only pipeline.
    const std::size_t step = pipelines > 1 ? stages : 1;
    for (std::size_t first = 0; first < step; ++first) {
      std::vector<double> means;
      for (std::size_t worker = first; worker < info_.workers; worker += step)
        if (mean(worker) > 0) means.push_back(mean(worker));
      if (means.empty()) continue;
      const auto middle = means.begin() + static_cast<std::ptrdiff_t>((means.size() - 1) / 2);
      std::ranges::nth_element(means, middle);
      const double median = *middle;
      for (std::size_t worker = first; worker < info_.workers; worker += step) {
        if (mean(worker) <= 0) continue;
        ratios[worker] += mean(worker) / median;
        ++kinds[worker];
      }
    }
  }
  for (std::size_t worker = 0; worker < ratios.size(); ++worker)
    if (kinds[worker] > 0) ratios[worker] /= kinds[worker];
  return ratios;
}

}  // namespace leeway::dashboard
