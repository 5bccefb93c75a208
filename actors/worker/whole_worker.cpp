#include "actors/worker/whole_worker.hpp"

#include <algorithm>
#include <utility>

namespace leeway {

// ---- membership ----

void WholeWorker::started(const msg::Start& start, Outbox& out) {
  next_ = start.iteration;
  repeated_.reset();
  waiting_since_ = out.now();
}

bool WholeWorker::take(Address from, Envelope& envelope, Outbox& out) {
  if (const auto* dropped = std::get_if<msg::PushDropped>(&envelope.body)) {
    handle(from, *dropped, out);
  } else if (const auto* outdated = std::get_if<msg::Outdated>(&envelope.body)) {
    handle(from, *outdated, out);
  } else {
    return false;
  }
  return true;
}

void WholeWorker::handle(Address from, const msg::PushDropped& dropped, Outbox& out) {
  if (from != kScheduler || !job_->consistency->round_size().drops())
    return refuse_malformed(from, dropped.next, "no round is closed without a worker here", out);
  if (state_ != State::running) return;
  // Buckets without an acknowledgement stay until their shards acknowledge them as dropped.
  if (is_iterating() && pushed_.iteration < dropped.next) dropped_ = true;
  leases_.skip_to(dropped.next);  // the scheduler leases the skipped samples again
  parameters_.forget_below(dropped.next);
  next_ = std::max(next_, dropped.next);
  advance(out);
}

void WholeWorker::handle(Address from, const msg::Outdated& outdated, Outbox& out) {
  if (from != address_of(ShardId(0)) || !job_->delay_policy || !job_->delay_policy->lag_limit())
    return refuse_malformed(from, outdated.iteration, "no weights become too old here", out);
  if (state_ != State::running || stopping_) return;
  if (is_iterating() && pushed_.iteration == outdated.iteration) {
    if (has_pushed_any_ || dropped_) return;
    dropped_ = true;
    discard_work();
    repeated_ = leased_;
    next_ = pushed_.iteration;
    ++report_.outdated;
    parameters_.outdate(next_ + 1);  // a prefetch, which is as old
  } else {
    parameters_.outdate(outdated.iteration);
  }
  advance(out);
}

Clock WholeWorker::acknowledged() const {
  const Iteration pushed = is_iterating() ? pushed_.iteration : next_;
  return parameters_.acknowledged(Clock(pushed.value()));
}

// ---- the iteration ----

void WholeWorker::pull_next(Outbox& out) {
  const bool prefetches = job_->plan.prefetch && !dropped_;
  if (parameters_.asked(next_) || (is_iterating() && !prefetches)) return;
  const Iteration pushed = is_iterating() ? pushed_.iteration : next_;
  parameters_.pull(next_, Clock(pushed.value()), out);
}

const LeasedIteration& WholeWorker::begin_next(Outbox& out) {
  const Iteration iteration = next_;
  const Duration waited = out.now() - waiting_since_;
  report_.wait += waited;
  spent_.waited += waited;
  leased_ = repeated_ ? *std::exchange(repeated_, std::nullopt) : leases_.take();
  report_.epoch = leased_.epoch;
  out.emit(event::StepStarted{id_, iteration, samples_to_compute(leased_), waited});
  fail_if_planned<plan::Throws>(iteration, "throws");
  next_ = iteration + 1;
  computing_since_ = out.now();
  pushed_ = {.iteration = iteration,
             .weight = leased_.weight(),
             .samples = static_cast<std::uint32_t>(leased_.samples()),
             .applied = leased_.applied,
             .flushes = leased_.flushes};
  if (job_->local_optimizer) pushed_.kind = msg::Push::Kind::delta;
  has_pushed_any_ = false;
  return leased_;
}

void WholeWorker::count_iteration(Iteration iteration, std::int64_t samples, Outbox& out) {
  count_computed(iteration, samples, out);
  if (samples > 0) spend(samples, waiting_since_);
  report(false, out);
}

void WholeWorker::count_computed(Iteration iteration, std::int64_t samples, Outbox& out) {
  waiting_since_ = out.now();  // writing an event takes time
  out.emit(event::StepFinished{id_, iteration, samples});
  report_.compute += waiting_since_ - computing_since_;
  report_.clock = Clock(next_.value());
  if (samples > 0) ++report_.iterations;
}

void WholeWorker::count_given_up(std::int64_t samples, Outbox& out) {
  if (samples > 0) spend(samples, out.now());
}

void WholeWorker::spend(std::int64_t samples, Instant until) {
  ++spent_.iterations;
  spent_.samples += static_cast<std::uint64_t>(samples);
  spent_.computed += until - computing_since_;
}

}  // namespace leeway
