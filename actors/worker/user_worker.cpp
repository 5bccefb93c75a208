#include "actors/worker/user_worker.hpp"

#include <algorithm>
#include <utility>

namespace leeway {
namespace {

/// The user's thread runs until its next call.
class UserTurn final : public Work {
 public:
  UserTurn(std::shared_ptr<UserLoop> loop, bool continues)
      : loop_(std::move(loop)), continues_(continues) {}
  int parts() const override { return 1; }
  Cost cost(int) const override { return {}; }
  bool continues_iteration() const override { return continues_; }
  void run(int) override { loop_->wait(); }

 private:
  const std::shared_ptr<UserLoop> loop_;
  const bool continues_;
};

/// Time that the user's thread has asked for.
class UserTime final : public Work {
 public:
  explicit UserTime(Duration time) : time_(time) {}
  int parts() const override { return 1; }
  Cost cost(int) const override { return {.time = time_}; }
  bool continues_iteration() const override { return true; }
  void run(int) override {}

 private:
  const Duration time_;
};

}  // namespace

UserWorker::UserWorker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : WholeWorker(std::move(job), id, launch), loop_(job_->user_loops->begin(job_, id, launch)) {
  if (job_->plan.stragglers.empty() && job_->plan.faults.empty()) loop_->allow_posts();
}

UserWorker::~UserWorker() {
  loop_->end_and_wait(UserLoop::End::worker, "its worker has ended");
}

// ---- membership ----

void UserWorker::started(const msg::Start& start, Outbox& out) {
  WholeWorker::started(start, out);
  gives_back_ = false;
  if (waits_for(UserCall::Kind::barrier) && barriers_ <= start.open_barriers)
    return answer({}, out);
  if (!work_ && !call_ && !is_over_) listen(out);
}

void UserWorker::on_link(Address peer, Outbox& out) {
  Participant::on_link(peer, out);
  if (peer == kScheduler && leaves_ && state_ != State::stopped)
    send(kScheduler, msg::Leave{id_}, out);
}

void UserWorker::forget() {
  iterating_ = false;
  dropped_ = false;
  gives_back_ = false;
}

void UserWorker::stop_if_done(Outbox& out) {
  if ((iterating_ && !dropped_) || !parameters_.all_acknowledged()) return;
  if (std::exchange(iterating_, false)) count_iteration(pushed_.iteration, 0, out);
  say_stopped(out);
  loop_->end_and_wait(UserLoop::End::run, "the run has ended");
}

// ---- the user's thread ----

void UserWorker::listen(Outbox& out) {
  work_ = std::make_shared<UserTurn>(loop_, iterating_);
  out.compute(work_);
}

void UserWorker::answer(UserAnswer answer, Outbox& out) {
  call_.reset();
  answer.now = out.now();
  loop_->answer(std::move(answer));
  listen(out);
}

template <class Call>
void UserWorker::ending_loop_if_it_fails(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    loop_->end_and_wait(UserLoop::End::worker, error.what());
    throw;
  }
}

void UserWorker::on_part(Work& work, int, Outbox& out) {
  if (&work == work_.get()) ending_loop_if_it_fails([&] { turn_over(work, out); });
}

void UserWorker::turn_over(Work& work, Outbox& out) {
  const bool was_time = dynamic_cast<UserTime*>(&work);
  work_.reset();
  if (was_time) return answer({}, out);
  call_ = loop_->take();
  is_over_ = !call_;
  if (call_) handle(*call_, out);
  advance(out);
}

void UserWorker::handle(UserCall& call, Outbox& out) {
  switch (call.kind) {
    case UserCall::Kind::push:
      if (is_present(call)) push_layers(call, out);
      return answer({}, out);
    case UserCall::Kind::finish:
      if (is_present(call)) finish_iteration(call, out);
      return answer({}, out);
    case UserCall::Kind::compute:
      work_ = std::make_shared<UserTime>(call.time);
      return out.compute(work_);
    case UserCall::Kind::give_back:
      if (is_present(call)) give_back(out);
      return answer({}, out);
    case UserCall::Kind::barrier:
      ++barriers_;
      return;  // see advance()
    case UserCall::Kind::begin:
    case UserCall::Kind::flush:
    case UserCall::Kind::close:
      return;  // see advance()
  }
}

void UserWorker::leave_if_closed(Outbox& out) {
  if (leaves_ || !(is_over_ || waits_for(UserCall::Kind::close))) return;
  if (iterating_ && std::ranges::count(layers_pushed_, true) > 0)
    throw std::runtime_error("its loop has ended within an iteration");
  if (iterating_) give_back(out);
  gives_back_ = false;  // it need not be idle first
  leaves_ = true;
  send(kScheduler, msg::Leave{id_}, out);
}

// ---- the iteration ----

void UserWorker::advance(Outbox& out) {
  ending_loop_if_it_fails([&] { take_steps(out); });
}

void UserWorker::take_steps(Outbox& out) {
  loop_->set_acknowledged(acknowledged());
  if (state_ == State::joining || state_ == State::stopped) return;
  leave_if_closed(out);
  if (waits_for(UserCall::Kind::flush) && parameters_.all_acknowledged()) answer({}, out);
  if (stopping_) return stop_if_done(out);
  if (gives_back_ || waits_for(UserCall::Kind::barrier)) return pause(out);
  if (state_ == State::idle) return;
  lease_beyond(next_, out);
  if (leases_.leased(next_)) {
    pull_next(out);
    if (waits_for(UserCall::Kind::begin) && parameters_.arrived(next_)) begin_iteration(out);
  } else if (leases_.no_data() && !iterating_ && parameters_.all_acknowledged()) {
    say_idle(out);
  }
}

void UserWorker::pause(Outbox& out) {
  const std::uint64_t barrier = waits_for(UserCall::Kind::barrier) ? barriers_ : 0;
  const bool is_said = state_ == State::idle && barrier_ == barrier;
  if (!is_said && parameters_.all_acknowledged()) say_idle(out, barrier);
}

void UserWorker::give_back(Outbox& out) {
  out.emit(event::StepFinished{id_, pushed_.iteration, 0});
  if (!dropped_) next_ = pushed_.iteration;
  iterating_ = dropped_ = false;
  gives_back_ = true;
}

void UserWorker::begin_iteration(Outbox& out) {
  UserAnswer answer{.iteration = next_, .weights = parameters_.take(next_)};
  answer.leased = begin_next(out);
  versions_ = answer.weights.versions;
  layers_pushed_.assign(static_cast<std::size_t>(job_->model->layers()), false);
  if (answer.leased.samples() == 0) {  // the user's thread goes on waiting
    parameters_.push_empty(pushed_.iteration, out);
    return count_iteration(pushed_.iteration, 0, out);
  }
  iterating_ = true;
  dropped_ = false;
  this->answer(std::move(answer), out);
  advance(out);  // a prefetch can start now
}

void UserWorker::push_layers(UserCall& call, Outbox& out) {
  for (const int layer : call.layers) {
    if (dropped_ || layers_pushed_[static_cast<std::size_t>(layer)]) continue;
    layers_pushed_[static_cast<std::size_t>(layer)] = true;
    parameters_.push_layer(
        pushed_, layer, versions_, [&](BlockId id) { return std::move(call.gradients.at(id)); },
        out, call.assigned);
    fail_if_planned<plan::Killed>(pushed_.iteration, "is killed");
  }
}

void UserWorker::finish_iteration(UserCall& call, Outbox& out) {
  push_layers(call, out);
  if (!dropped_)
    for (int layer = 0; layer < job_->model->layers(); ++layer)
      if (!layers_pushed_[static_cast<std::size_t>(layer)])
        parameters_.push_empty(pushed_.iteration, layer, out);
  const std::int64_t samples = dropped_ ? 0 : pushed_.samples;
  if (dropped_) count_given_up(pushed_.samples, out);  // the loop has computed all of them
  iterating_ = dropped_ = false;
  report_.samples += static_cast<std::uint64_t>(samples);
  count_iteration(pushed_.iteration, samples, out);
}

}  // namespace leeway
