#include "actors/worker/worker.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway {

Worker::Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life)
    : Participant(std::move(job), id, life), buffers_(make_buffers()) {}

std::shared_ptr<StepBuffers> Worker::make_buffers() const {
  if (job_->cost_only) return nullptr;
  return std::make_shared<StepBuffers>(job_, id_);
}

// ---- membership ----

void Worker::started(Iteration iteration, Outbox& out) {
  next_ = iteration;
  waiting_since_ = out.now();
}

void Worker::forget() {
  step_.reset();
  buffers_ = make_buffers();  // the old ones may still be computing
  late_ = false;
}

bool Worker::take(Address from, Envelope& envelope, Outbox& out) {
  const auto* late = std::get_if<msg::PushDropped>(&envelope.body);
  if (!late) return false;
  handle(from, *late, out);
  return true;
}

void Worker::handle(Address from, const msg::PushDropped& late, Outbox& out) {
  if (from != kScheduler || !job_->consistency->drops_stragglers())
    return refuse_malformed(from, late.next, "no round is closed without a worker here", out);
  if (state_ != State::running) return;
  // Parts that are not acknowledged are kept until their shards say that they may be forgotten.
  if (step_ && step_->iteration() < late.next) late_ = true;
  leases_.skip_to(late.next);  // its own samples came back, if no others
  parameters_.forget_below(late.next);
  next_ = std::max(next_, late.next);
  advance(out);
}

Clock Worker::acknowledged() const {
  return parameters_.acknowledged(Clock(step_ ? step_->iteration().value() : next_.value()));
}

// ---- the iteration ----

void Worker::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  if (stopping_) return stop_if_done(out);
  if (state_ == State::idle || diverged_) return;
  lease_beyond(next_, out);
  if (leases_.leased(next_)) {
    if (!parameters_.asked(next_) && (!step_ || job_->plan.prefetch)) pull(next_, out);
    if (!step_ && parameters_.arrived(next_)) start_step(out);
  } else if (leases_.no_data() && !step_ && parameters_.all_acknowledged()) {
    say_idle(out);
  }
}

void Worker::stop_if_done(Outbox& out) {
  if ((step_ && !late_) || !parameters_.all_acknowledged()) return;
  if (step_) {  // late, and may still be computing: nobody waits for it
    out.emit({.kind = Event::Kind::step_finished, .worker = id_, .iteration = step_->iteration()});
    step_.reset();
  }
  say_stopped(out);
}

void Worker::pull(Iteration iteration, Outbox& out) {
  const Iteration pushed = step_ ? step_->iteration() : next_;
  parameters_.pull(iteration, Clock(pushed.value()), out);
}

StepSamples Worker::samples_of(const LeasedIteration& leased) const {
  StepSamples taken{leased.epoch, {}};
  if (job_->cost_only) {
    taken.samples.assign(static_cast<std::size_t>(leased.samples()), 0);  // which is all the same
  } else if (leased.samples() > 0) {
    const auto order = job_->orders->of(leased.epoch);
    taken.samples.assign(order->begin() + leased.begin, order->begin() + leased.end);
  }
  return taken;
}

void Worker::start_step(Outbox& out) {
  const Iteration iteration = next_;
  PulledWeights weights = parameters_.take(iteration);
  report_.wait += out.now() - waiting_since_;
  spent_.waited += out.now() - waiting_since_;
  LeasedIteration leased = leases_.take();
  report_.epoch = leased.epoch;
  const std::int64_t count = leased.samples();
  out.emit(
      {.kind = Event::Kind::step_started, .worker = id_, .iteration = iteration, .value = count});
  fail_if_planned<plan::Throws>(iteration, "throws");
  next_ = iteration + 1;
  step_since_ = out.now();
  if (count == 0) {
    parameters_.push_empty(iteration, out);
    finish_iteration(iteration, 0, out);
    return;
  }
  StepSamples samples = samples_of(leased);
  pushed_ = {iteration, leased.weight(), static_cast<std::uint32_t>(count),
             std::move(leased.applied)};
  step_versions_ = std::move(weights.versions);
  step_ = std::make_shared<Step>(job_, buffers_, iteration, std::move(samples),
                                 std::move(weights.blobs), step_versions_);
  out.compute(step_);
  advance(out);  // a prefetch may go out now
}

void Worker::on_part(Work& work, int part, Outbox& out) {
  if (&work != step_.get() || diverged_) return;  // of an earlier life, or given up
  const bool last = part + 1 == step_->parts();
  if (late_) {
    if (!last) return;
    const Iteration iteration = step_->iteration();
    step_.reset();
    late_ = false;
    return finish_iteration(iteration, 0, out);
  }
  if (!step_->diverged_layer().empty()) {
    say_diverged({step_->iteration(), step_->loss(), step_->diverged_layer()}, out);
    next_ = step_->iteration();  // it was not pushed
    step_.reset();
    return advance(out);
  }
  push_layer(step_->layer_of(part), out);
  if (!last) return;
  const Iteration iteration = step_->iteration();
  const auto samples = static_cast<std::int64_t>(step_->samples().samples.size());
  report_.samples += static_cast<std::uint64_t>(samples);
  report_.correct += static_cast<std::uint64_t>(step_->correct());
  report_.loss_sum += step_->loss() * static_cast<double>(samples);
  step_.reset();
  finish_iteration(iteration, samples, out);
}

void Worker::push_layer(int layer, Outbox& out) {
  parameters_.push_layer(
      pushed_, layer, step_versions_, [&](BlockId id) { return step_->take_gradient(id); }, out);
  fail_if_planned<plan::Killed>(pushed_.iteration, "is killed");
}

void Worker::finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out) {
  out.emit({.kind = Event::Kind::step_finished,
            .worker = id_,
            .iteration = iteration,
            .value = samples});
  waiting_since_ = out.now();
  report_.compute += waiting_since_ - step_since_;
  report_.clock = Clock(next_.value());
  if (samples > 0) {
    ++report_.iterations;
    ++spent_.iterations;
    spent_.samples += static_cast<std::uint64_t>(samples);
    spent_.computed += waiting_since_ - step_since_;
  }
  report(false, out);
  advance(out);
}

}  // namespace leeway
