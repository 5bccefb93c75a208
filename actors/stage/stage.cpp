#include "actors/stage/stage.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "models/pieces.hpp"

namespace leeway {

using pipeline::OpKind;

Stage::Stage(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life)
    : Participant(std::move(job), id, life),
      stage_(job_->stages->stage_of(id)),
      neighbours_(job_->stages->neighbours(id)),
      pass_(make_pass()),
      program_(job_->stages->spec(), static_cast<int>(stage_)) {
  const auto wanted = wanted_gradients(*job_->model);
  for (const ModelChunk& part : job_->stages->chunks())
    gradient_wanted_.push_back(part.end < job_->model->layers() &&
                               wanted[static_cast<std::size_t>(part.end) - 1]);
}

std::shared_ptr<StagePass> Stage::make_pass() const {
  if (job_->cost_only) return nullptr;
  return std::make_shared<StagePass>(job_, id_);
}

// ---- membership ----

void Stage::started(Iteration iteration, Outbox& out) {
  base_ = announced_ = iteration;
  next_op_ = finished_ = 0;
  updated_.assign(job_->stages->share(stage_).chunks.size(), 0);
  end_.reset();
  given_up_ = false;
  behind_ = Clock(iteration.value());
  mini_batches_.clear();
  forget_versions(held_.end());
  activations_.clear();
  gradients_.clear();
  idle_since_ = iteration_since_ = waits_since_ = out.now();
  waits_for_ = Wait::none;
  blocked_since_.reset();
  blocked_ = {};
  for (auto& [from, envelope] : std::exchange(early_, {})) take(from, envelope, out);
}

Stage::~Stage() {
  let_go();
}

void Stage::let_go() {
  if (pass_) {
    for (auto& [version, held] : held_) pass_->keep(std::move(held.weights));
    for (auto& [key, micro_batch] : in_flight_) pass_->keep(micro_batch->weights);
  }
  held_.clear();
  in_flight_.clear();
}

void Stage::forget() {
  work_.reset();
  let_go();
  pass_ = make_pass();  // the old one may still be computing
}

Clock Stage::acknowledged() const {
  return parameters_.acknowledged(Clock((base_ + finished_).value()));
}

bool Stage::is_neighbour(Address peer) const {
  return peer.kind == RoleKind::worker && std::find(neighbours_.begin(), neighbours_.end(),
                                                    WorkerId(peer.index)) != neighbours_.end();
}

Clock Stage::trained() const {
  return is_last_stage() ? acknowledged() : std::min(acknowledged(), behind_);
}

void Stage::on_link(Address peer, Outbox& out) {
  if (!is_neighbour(peer)) return Participant::on_link(peer, out);
  if (state_ == State::stopped || planted(Mutant::links_of_stages_forgotten)) return;
  // What was on its way between the two may be lost, be it of a Start that is not heard of yet
  // here, or has ended here: the pipeline starts again where it is acknowledged.
  stopping_ = false;  // it is said again to who joins
  rejoin(out);
}

void Stage::advance(Outbox& out) {
  if (state_ == State::joining || state_ == State::stopped) return;
  if (state_ == State::idle || given_up_) {
    if (stopping_ && parameters_.all_acknowledged()) say_stopped(out);
    return;
  }
  if (stopping_ && planted(Mutant::stops_in_the_middle)) return say_stopped(out);
  if (is_lead()) announce(out);
  pull_versions(out);
  while (!work_ && step(out)) pull_versions(out);
  if (is_lead()) announce(out);
  say_done_if_done(out);
}

void Stage::say_done_if_done(Outbox& out) {
  if (!end_ || base_ + finished_ < *end_ || work_ || !parameters_.all_acknowledged()) return;
  LW_CHECK(in_flight_.empty(), in_flight_.size());
  if (stopping_)
    say_stopped(out);
  else
    say_idle(out);
}

// ---- weights ----

void Stage::pull_versions(Outbox& out) {
  if (!std::exchange(may_pull_, false)) return;
  for (const auto& reading : program_.readings(next_op_, finished_)) {
    const Iteration first = base_ + reading.first;
    if (end_ && first >= *end_) return;
    if (first >= announced_) return;
    const auto [held, fresh] = held_.try_emplace(reading.version);
    if (!fresh) continue;
    // For the last that reads them: what the bound says of it holds for those before.
    held->second.pulled = base_ + reading.last;
    if (planted(Mutant::pulled_too_early)) held->second.pulled = base_ + reading.first;
    std::int64_t own = (base_ + reading.version).value();
    if (planted(Mutant::own_updates_left_out)) own = std::max(own - 1, base_.value());
    parameters_.pull(held->second.pulled, Clock(own), out);
  }
}

std::shared_ptr<BoundWeights> Stage::weights_for(std::int64_t version, Outbox& out) {
  const auto found = held_.find(version);
  if (found == held_.end()) return nullptr;
  Held& held = found->second;
  if (!held.weights && parameters_.arrived(held.pulled))
    held.weights = std::make_shared<BoundWeights>(job_, parameters_.take(held.pulled));
  if (!held.weights && !blocked_since_) blocked_since_ = out.now();
  if (held.weights && blocked_since_) {
    blocked_ += out.now() - *blocked_since_;
    blocked_since_.reset();
  }
  return held.weights;
}

void Stage::forget_versions(std::map<std::int64_t, Held>::iterator end) {
  for (auto at = held_.begin(); at != end; ++at)
    if (!at->second.weights) parameters_.forget(at->second.pulled);
  held_.erase(held_.begin(), end);
}

// ---- operations ----

bool Stage::step(Outbox& out) {
  const Op op = program_.at(next_op_);
  const Iteration iteration = iteration_of(op);
  if (end_ && iteration >= *end_) {
    if (base_ + finished_ >= *end_) return false;
    ++next_op_;  // of an iteration that does not come
    return true;
  }
  const auto found = mini_batches_.find(iteration);
  if (found == mini_batches_.end()) return wait_for(is_lead() ? Wait::none : Wait::before, out);
  MiniBatch& mini_batch = found->second;
  if (op.kind == OpKind::update) {
    // Also without samples it begins when the staleness rule lets it.
    if (mini_batch.leased.samples() == 0 && !weights_for(op.version - 1, out))
      return wait_for(Wait::weights, out);
    ++next_op_;
    begin(iteration, mini_batch, out);
    update(op, mini_batch, out);
    return true;
  }
  if (mini_batch.size_of(op.micro_batch) == 0) {
    ++next_op_;
    return true;
  }
  return op.kind == OpKind::forward ? start_forward(op, mini_batch, out)
                                    : start_backward(op, mini_batch, out);
}

bool Stage::wait_for(Wait what, Outbox& out) {
  const Duration time = out.now() - std::exchange(waits_since_, out.now());
  if (waits_for_ == Wait::before) report_.wait_before += time;
  if (waits_for_ == Wait::after) report_.wait_after += time;
  waits_for_ = what;
  return false;
}

void Stage::begin(Iteration iteration, MiniBatch& mini_batch, Outbox& out) {
  if (std::exchange(mini_batch.begun, true)) return;
  out.emit({.kind = Event::Kind::step_started,
            .worker = id_,
            .iteration = iteration,
            .value = mini_batch.leased.samples()});
  fail_if_planned<plan::Throws>(iteration, "throws");
}

std::shared_ptr<StageMicroBatch> Stage::micro_batch_of(
    const Op& op, const MiniBatch& mini_batch, std::shared_ptr<BoundWeights> weights) const {
  auto made = std::make_shared<StageMicroBatch>();
  const std::int64_t first = mini_batch.leased.begin + mini_batch.first_of(op.micro_batch);
  const std::int64_t size = mini_batch.size_of(op.micro_batch);
  made->epoch = mini_batch.leased.epoch;
  if (job_->cost_only) {
    made->samples.assign(static_cast<std::size_t>(size), 0);  // which ones is all the same
  } else {
    const auto order = job_->orders->of(made->epoch);
    made->samples.assign(order->begin() + first, order->begin() + first + size);
  }
  made->weights = std::move(weights);
  made->pulled = held_.at(op.version).pulled;
  return made;
}

bool Stage::start_forward(const Op& op, MiniBatch& mini_batch, Outbox& out) {
  const Key key = key_of(op);
  const auto activation = activations_.find(key);
  if (part_of(op.chunk) > 0 && activation == activations_.end()) return wait_for(Wait::before, out);
  auto weights = weights_for(op.version, out);
  if (!weights) return wait_for(Wait::weights, out);
  StageWork::Task task{.kind = op.kind, .chunk = op.chunk, .opens = !mini_batch.begun};
  begin(std::get<Iteration>(key), mini_batch, out);
  if (mini_batch.versions.empty()) mini_batch.versions = weights->versions();
  task.micro_batch = micro_batch_of(op, mini_batch, std::move(weights));
  bool again = false;
  if (planted(Mutant::micro_batch_twice)) again = !in_flight_.contains(key);
  in_flight_[key] = task.micro_batch;
  if (activation != activations_.end()) {
    task.input = activation->second;
    if (!again) activations_.erase(activation);
  }
  compute(op, std::move(task), out);
  if (again) --next_op_;
  return true;
}

bool Stage::start_backward(const Op& op, MiniBatch& mini_batch, Outbox& out) {
  const Key key = key_of(op);
  StageWork::Task task{.kind = op.kind, .chunk = op.chunk};
  const bool inputs = pipeline::gives_input_gradient(op.kind);
  const std::uint32_t part = part_of(op.chunk);
  if (inputs && part + 1 < parts()) {
    // Also where it is empty, as there are no weights before it: so no stage runs ahead of those
    // behind it.
    const auto gradient = gradients_.find(key);
    if (gradient == gradients_.end()) return wait_for(Wait::after, out);
    if (gradient_wanted_[part]) task.input = std::move(gradient->second);
    gradients_.erase(gradient);
  }
  task.micro_batch = in_flight_.at(key);
  if (planted(Mutant::backward_on_newer_weights) && !held_.empty() &&
      weights_for(held_.rbegin()->first, out)) {
    task.micro_batch->weights = held_.rbegin()->second.weights;
    task.micro_batch->pulled = held_.rbegin()->second.pulled;
  }
  task.samples = mini_batch.leased.samples();
  task.micro_batches = mini_batch.micro_batches;
  const auto chunk = static_cast<std::size_t>(op.chunk);
  if (inputs) task.begins = mini_batch.backward[chunk]++ == 0;
  if (pipeline::gives_weight_gradient(op.kind))
    task.ends = ++mini_batch.summed[chunk] == mini_batch.micro_batches;
  task.releases = task.ends && !job_->stages->asynchronous();
  compute(op, std::move(task), out);
  return true;
}

void Stage::compute(const Op& op, StageWork::Task task, Outbox& out) {
  ++next_op_;
  working_on_ = op;
  work_since_ = out.now();
  report_.wait += work_since_ - idle_since_;
  wait_for(Wait::none, out);
  work_ = std::make_shared<StageWork>(job_, id_, pass_, std::move(task));
  out.compute(work_);
}

void Stage::on_part(Work& work, int part, Outbox& out) {
  if (&work != work_.get()) return;  // of an earlier life
  const bool last = part + 1 == work_->parts();
  if (given_up_) {
    if (last) work_.reset();
    return;
  }
  if (!work_->diverged_layer().empty()) {
    const Iteration iteration = iteration_of(working_on_);
    say_diverged({iteration, work_->result().loss, work_->diverged_layer()}, out);
    give_up(iteration, out);
    return advance(out);
  }
  push_layers(part, out);
  if (!last) return;
  finish_operation(out);
  advance(out);
}

void Stage::push_layers(int part, Outbox& out) {
  if (!work_->task().ends) return;
  const Iteration iteration = iteration_of(working_on_);
  const MiniBatch& mini_batch = mini_batches_.at(iteration);
  const PushedIteration pushed{iteration, mini_batch.leased.weight(),
                               static_cast<std::uint32_t>(mini_batch.leased.samples()),
                               mini_batch.leased.applied};
  for (const int layer : work_->layers_of(part))
    parameters_.push_layer(
        pushed, layer, mini_batch.versions, [&](BlockId id) { return work_->take_gradient(id); },
        out);
  fail_if_planned<plan::Killed>(iteration, "is killed");
}

void Stage::finish_operation(Outbox& out) {
  const auto work = std::move(work_);
  const StageWork::Task& task = work->task();
  const Key key = key_of(working_on_);
  const std::uint32_t part = part_of(task.chunk);
  idle_since_ = waits_since_ = out.now();
  report_.compute += idle_since_ - work_since_;
  Event event{.kind = Event::Kind::forward,
              .worker = id_,
              .iteration = iteration_of(working_on_),
              .value = working_on_.micro_batch,
              .value2 = task.micro_batch->pulled.value(),
              .chunk = part};
  if (task.kind == OpKind::forward) out.emit(event);
  if (pipeline::gives_input_gradient(task.kind)) {
    event.kind = Event::Kind::backward_inputs;
    out.emit(event);
    if (part + 1 == parts()) {
      MiniBatch& mini_batch = mini_batches_.at(event.iteration);
      mini_batch.loss += work->result().loss * static_cast<double>(task.micro_batch->size());
      mini_batch.correct += work->result().correct;
    }
  }
  note_memory();
  const bool inputs = pipeline::gives_input_gradient(task.kind);
  if (task.kind == OpKind::forward ? part + 1 < parts() : inputs && part > 0)
    send_tensor(*work, work->take_output(), out);
  if (!pipeline::gives_weight_gradient(task.kind)) return;
  event.kind = Event::Kind::backward_weights;
  out.emit(event);
  in_flight_.erase(key);
}

void Stage::note_memory() {
  if (job_->cost_only) return;
  const StageMicroBatch& latest = *in_flight_.at(key_of(working_on_));
  std::int64_t bytes = latest.held;
  std::set<const BoundWeights*> counted{latest.weights.get()};
  const auto count = [&](const std::shared_ptr<BoundWeights>& weights) {
    if (weights && counted.insert(weights.get()).second) bytes += weights->bytes();
  };
  for (const auto& [version, held] : held_) count(held.weights);
  for (const auto& [key, micro_batch] : in_flight_) {
    count(micro_batch->weights);
    if (micro_batch.get() != &latest) bytes += micro_batch->bytes();
  }
  report_.memory_bytes = std::max(report_.memory_bytes, static_cast<std::uint64_t>(bytes));
}

void Stage::update(const Op& op, MiniBatch& mini_batch, Outbox& out) {
  ++updated_[static_cast<std::size_t>(op.chunk)];
  const auto all = *std::min_element(updated_.begin(), updated_.end());
  if (all == finished_) return;
  LW_CHECK(all == finished_ + 1, all, finished_);
  const Iteration iteration = iteration_of(op);
  if (mini_batch.leased.samples() == 0) parameters_.push_empty(iteration, out);
  finish_iteration(iteration, mini_batch, out);
}

void Stage::finish_iteration(Iteration iteration, const MiniBatch& mini_batch, Outbox& out) {
  const std::int64_t samples = mini_batch.leased.samples();
  out.emit({.kind = Event::Kind::step_finished,
            .worker = id_,
            .iteration = iteration,
            .value = samples});
  ++finished_;
  may_pull_ = true;
  report_.clock = Clock(iteration.value() + 1);
  report_.epoch = mini_batch.leased.epoch;
  if (samples > 0) {
    ++report_.iterations;
    ++spent_.iterations;
    spent_.samples += static_cast<std::uint64_t>(samples);
    spent_.waited += blocked_;
    spent_.computed += out.now() - iteration_since_ - blocked_;
  }
  if (is_last_stage()) {
    report_.samples += static_cast<std::uint64_t>(samples);
    report_.correct += static_cast<std::uint64_t>(mini_batch.correct);
    report_.loss_sum += mini_batch.loss;
  }
  iteration_since_ = out.now();
  blocked_ = {};
  const Key next{iteration + 1, 0, 0};
  activations_.erase(activations_.begin(), activations_.lower_bound(next));
  gradients_.erase(gradients_.begin(), gradients_.lower_bound(next));
  forget_versions(held_.lower_bound(program_.next_forward(next_op_).version));
  mini_batches_.erase(iteration);
  report(false, out);
}

}  // namespace leeway
