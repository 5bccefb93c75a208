#include "actors/worker/worker.hpp"

#include <cmath>
#include <utility>

#include "actors/worker/compute_work.hpp"
#include "actors/worker/local_steps_work.hpp"
#include "actors/worker/warm_up.hpp"

namespace leeway {

Worker::Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : WholeWorker(std::move(job), id, launch) {
  if (job_->local_optimizer) optimizer_ = std::make_shared<LocalOptimizer>(job_);
}

void Worker::warm_up() {
  warm_up_engine(job_, id_, engine_);
}

// ---- membership ----

void Worker::forget() {
  if (work_) work_->cancel();
  work_.reset();
  dropped_ = false;
}

// ---- the iteration ----

void Worker::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  if (stopping_) return stop_if_done(out);
  if (state_ == State::idle || diverged_) return;
  lease_beyond(next_, out);
  if (leases_.leased(next_)) {
    pull_next(out);
    if (!work_ && parameters_.arrived(next_)) start_iteration(out);
  } else if (leases_.no_data() && !work_ && parameters_.all_acknowledged()) {
    say_idle(out);
  }
}

void Worker::stop_if_done(Outbox& out) {
  if ((work_ && !dropped_) || !parameters_.all_acknowledged()) return;
  if (work_) {  // no push follows, so the worker does not wait for the end of the iteration
    out.emit(event::StepFinished{id_, pushed_.iteration, 0});
    work_.reset();
  }
  say_stopped(out);
}

void Worker::start_iteration(Outbox& out) {
  PulledWeights pulled = parameters_.take(next_);
  const LeasedIteration& leased = begin_next(out);
  pushed_.loss_scale = pulled.loss_scale;
  if (leased.samples() == 0) {
    parameters_.push_empty(pushed_.iteration, out);
    return finish_iteration(pushed_.iteration, 0, out);
  }
  work_ = work_of(leased, std::move(pulled));
  given_up_ = false;
  out.compute(work_);
  advance(out);  // a prefetch can start now
}

std::shared_ptr<IterationWork> Worker::work_of(const LeasedIteration& leased,
                                               PulledWeights pulled) {
  if (optimizer_)
    return std::make_shared<LocalStepsWork>(job_, id_, engine_, optimizer_, pushed_.iteration,
                                            leased, std::move(pulled));
  auto weights = std::make_shared<DeviceWeights>(job_, std::move(pulled));
  return std::make_shared<ComputeWork>(
      job_, id_, engine_,
      task_of(*job_, leased, std::move(weights), pushed_.iteration, pushed_.loss_scale));
}

void Worker::on_part(Work& work, int part, Outbox& out) {
  if (&work != work_.get() || diverged_) return;  // of an earlier session, or given up
  const bool last = part + 1 == work_->parts();
  const Iteration iteration = pushed_.iteration;
  if (dropped_) {
    if (!std::exchange(given_up_, true)) {
      count_given_up(std::llround(pushed_.samples * work_->share_done(part)), out);
      work_->cancel();
    }
    if (!last) return;
    work_.reset();
    dropped_ = false;
    return finish_iteration(iteration, 0, out);
  }
  if (!work_->diverged_layer().empty()) {
    say_diverged({iteration, work_->result().loss, work_->diverged_layer()}, out);
    next_ = iteration;  // it was not pushed
    work_.reset();
    return advance(out);
  }
  push_layers(part, out);
  if (!last) return;
  const auto samples = std::int64_t{pushed_.samples};
  count_result(work_->result(), samples);
  work_.reset();
  finish_iteration(iteration, samples, out);
}

void Worker::push_layers(int part, Outbox& out) {
  if (job_->scales_losses && !std::isfinite(work_->squares())) {
    has_pushed_any_ = true;
    return parameters_.push_overflow(pushed_, out);
  }
  if (job_->clips_pushes()) pushed_.scale = job_->clip_scale_of(work_->squares());
  for (const int layer : work_->layers_of(part)) {
    has_pushed_any_ = true;
    parameters_.push_layer(
        pushed_, layer, work_->versions(), [&](BlockId id) { return work_->take_gradient(id); },
        out);
    fail_if_planned<plan::Killed>(pushed_.iteration, "is killed");
  }
}

void Worker::finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out) {
  count_iteration(iteration, samples, out);
  advance(out);
}

}  // namespace leeway
