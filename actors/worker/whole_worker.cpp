#include "actors/worker/whole_worker.hpp"

#include <algorithm>

namespace leeway {

// ---- membership ----

void WholeWorker::started(const msg::Start& start, Outbox& out) {
  next_ = start.iteration;
  waiting_since_ = out.now();
}

bool WholeWorker::take(Address from, Envelope& envelope, Outbox& out) {
  const auto* dropped = std::get_if<msg::PushDropped>(&envelope.body);
  if (!dropped) return false;
  handle(from, *dropped, out);
  return true;
}

void WholeWorker::handle(Address from, const msg::PushDropped& dropped, Outbox& out) {
  if (from != kScheduler || job_->consistency->spare() == 0)
    return refuse_malformed(from, dropped.next, "no round is closed without a worker here", out);
  if (state_ != State::running) return;
  // Buckets without an acknowledgement stay until their shards acknowledge them as dropped.
  if (is_iterating() && pushed_.iteration < dropped.next) dropped_ = true;
  leases_.skip_to(dropped.next);  // the scheduler leases the skipped samples again
  parameters_.forget_below(dropped.next);
  next_ = std::max(next_, dropped.next);
  advance(out);
}

Clock WholeWorker::acknowledged() const {
  const Iteration pushed = is_iterating() ? pushed_.iteration : next_;
  return parameters_.acknowledged(Clock(pushed.value()));
}

// ---- the iteration ----

void WholeWorker::pull_next(Outbox& out) {
  if (parameters_.asked(next_) || (is_iterating() && !job_->plan.prefetch)) return;
  const Iteration pushed = is_iterating() ? pushed_.iteration : next_;
  parameters_.pull(next_, Clock(pushed.value()), out);
}

LeasedIteration WholeWorker::begin_next(Outbox& out) {
  const Iteration iteration = next_;
  const Duration waited = out.now() - waiting_since_;
  report_.wait += waited;
  spent_.waited += waited;
  LeasedIteration leased = leases_.take();
  report_.epoch = leased.epoch;
  out.emit(event::StepStarted{id_, iteration, leased.samples(), waited});
  fail_if_planned<plan::Throws>(iteration, "throws");
  next_ = iteration + 1;
  computing_since_ = out.now();
  pushed_ = {iteration, leased.weight(), static_cast<std::uint32_t>(leased.samples()),
             leased.applied};
  if (job_->local_optimizer) pushed_.kind = msg::Push::Kind::delta;
  return leased;
}

void WholeWorker::count_iteration(Iteration iteration, std::int64_t samples, Outbox& out) {
  waiting_since_ = out.now();  // writing an event takes time
  out.emit(event::StepFinished{id_, iteration, samples});
  report_.compute += waiting_since_ - computing_since_;
  report_.clock = Clock(next_.value());
  if (samples > 0) {
    ++report_.iterations;
    ++spent_.iterations;
    spent_.samples += static_cast<std::uint64_t>(samples);
    spent_.computed += waiting_since_ - computing_since_;
  }
  report(false, out);
}

}  // namespace leeway
