// The operations of a Stage.
#include <algorithm>
#include <utility>

#include "actors/stage/stage.hpp"
#include "core/mutant.hpp"

namespace leeway {

using pipeline::OpKind;

void Stage::pull_versions(Outbox& out) {
  if (!std::exchange(may_pull_, false)) return;
  for (const auto& reading : progress_.readings()) {
    if (progress_.is_past_end(reading.first) || reading.first >= progress_.announced()) return;
    // The staleness bound of the last iteration that reads them also holds for the earlier ones.
    Iteration pulled = reading.last;
    if (planted(Mutant::pulled_too_early)) pulled = reading.first;
    Clock own = progress_.clock_of(reading.version);
    if (planted(Mutant::own_updates_left_out))
      own = progress_.clock_of(std::max<std::int64_t>(reading.version - 1, 0));
    weights_.pull(reading.version, pulled, own, out);
  }
}

bool Stage::step(Outbox& out) {
  const Op op = progress_.op();
  const Iteration iteration = progress_.iteration_of(op);
  if (progress_.is_past_end(iteration)) {
    if (progress_.is_complete()) return false;
    progress_.advance();  // of an iteration that does not come
    return true;
  }
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end())
    return wait_for(position_.is_first() ? StageWait::none : StageWait::previous, out);
  StageIteration& of = found->second;
  if (op.kind == OpKind::update) {
    // An iteration without samples also begins only when the staleness rule allows.
    if (of.leased.samples() == 0 && !weights_.find(op.version - 1, out.now()))
      return wait_for(StageWait::weights, out);
    const bool pushes =
        job_->clips_pushes() && of.leased.samples() > 0 && progress_.update_completes(op.chunk);
    if (pushes && !norms_.total(iteration))
      return wait_for(position_.is_first() ? StageWait::next : StageWait::previous, out);
    progress_.advance();
    begin(iteration, of, out);
    if (pushes) push_held(iteration, of, out);
    update(op, of, out);
    return true;
  }
  if (of.size_of(op.micro_batch) == 0) {
    progress_.advance();
    return true;
  }
  return op.kind == OpKind::forward ? start_forward(op, of, out) : start_backward(op, of, out);
}

bool Stage::wait_for(StageWait what, Outbox& out) {
  waits_.wait_for(what, out.now(), report_);
  return false;
}

void Stage::begin(Iteration iteration, StageIteration& of, Outbox& out) {
  if (std::exchange(of.begun, true)) return;
  out.emit(event::StepStarted{id_, iteration, of.leased.samples(), Duration{}});
  fail_if_planned<plan::Throws>(iteration, "throws");
}

// ---- computing ----

bool Stage::start_forward(const Op& op, StageIteration& of, Outbox& out) {
  const MicroBatchKey key = key_of(op);
  const Blob* activation = inputs_.activation(key);
  if (position_.model_chunk(op.chunk) > 0 && !activation)
    return wait_for(position_.runs_back(op.chunk) ? StageWait::next : StageWait::previous, out);
  auto weights = weights_.find(op.version, out.now());
  if (!weights) return wait_for(StageWait::weights, out);
  ComputeWork::Task task{.operations = {}, .opens = !of.begun};
  begin(std::get<Iteration>(key), of, out);
  if (of.versions.empty()) of.versions = weights->versions();
  const auto micro_batch = make_micro_batch(*job_, of.leased, op.micro_batch, of.micro_batches,
                                            std::move(weights), weights_.pulled(op.version));
  bool again = planted(Mutant::micro_batch_twice);  // not const: see planted()
  again = again && !in_flight_.has(key);
  in_flight_.add(key, micro_batch);
  task.operations.push_back({op.kind, op.chunk, micro_batch, activation ? *activation : Blob()});
  if (!again) inputs_.erase_activation(key);
  compute(op, std::move(task), out);
  if (again) progress_.repeat();
  return true;
}

bool Stage::start_backward(const Op& op, StageIteration& of, Outbox& out) {
  const MicroBatchKey key = key_of(op);
  const std::uint32_t model_chunk = position_.model_chunk(op.chunk);
  const bool inputs = pipeline::gives_input_gradient(op.kind);
  Blob output_gradient;
  if (inputs && model_chunk + 1 < position_.model_chunks()) {
    // Also waits for an empty gradient, so that no stage runs ahead of later ones.
    auto received = inputs_.take_gradient(key);
    if (!received)
      return wait_for(position_.runs_back(op.chunk) ? StageWait::previous : StageWait::next, out);
    if (position_.needs_output_gradient(model_chunk)) output_gradient = std::move(*received);
  }
  const auto& micro_batch = in_flight_.at(key);
  if (const auto newest = weights_.newest();
      planted(Mutant::backward_on_newer_weights) && newest && weights_.find(*newest, out.now())) {
    micro_batch->weights = weights_.find(*newest, out.now());
    micro_batch->pulled = weights_.pulled(*newest);
  }
  ComputeWork::Task task{
      .operations = {}, .samples = of.leased.samples(), .micro_batches = of.micro_batches};
  task.operations.push_back({op.kind, op.chunk, micro_batch, std::move(output_gradient)});
  if (inputs) task.begins = of.count_backward(op.chunk);
  if (pipeline::gives_weight_gradient(op.kind)) task.ends = of.count_summed(op.chunk);
  task.releases = task.ends && !job_->stages->asynchronous();
  compute(op, std::move(task), out);
  return true;
}

void Stage::compute(const Op& op, ComputeWork::Task task, Outbox& out) {
  progress_.advance();
  working_on_ = op;
  work_since_ = out.now();
  waits_.end(work_since_, report_);
  work_ = std::make_shared<ComputeWork>(job_, id_, engine_, std::move(task));
  out.compute(work_);
}

void Stage::on_part(Work& work, int part, Outbox& out) {
  if (&work != work_.get()) return;  // of an earlier session
  const bool last = part + 1 == work_->parts();
  if (given_up_) {
    if (last) work_.reset();
    return;
  }
  if (!work_->diverged_layer().empty()) {
    const Iteration iteration = progress_.iteration_of(working_on_);
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
  const Iteration iteration = progress_.iteration_of(working_on_);
  StageIteration& of = iterations_.at(iteration);
  const auto gradient = [&](BlockId id) { return work_->take_gradient(id); };
  if (job_->clips_pushes()) {
    for (const int layer : work_->layers_of(part)) {
      of.held_layers.push_back(layer);
      job_->stages->share_of(id_).for_each_block(
          layer, [&](BlockId block) { of.held[block] = gradient(block); });
    }
    return norms_.add(iteration, work_->squares(), out);
  }
  const PushedIteration pushed = of.pushed(iteration);
  for (const int layer : work_->layers_of(part)) {
    parameters_.push_layer(pushed, layer, of.versions, gradient, out);
    fail_if_planned<plan::Killed>(iteration, "is killed");
  }
}

void Stage::push_held(Iteration iteration, StageIteration& of, Outbox& out) {
  const auto pushed = of.pushed(iteration, job_->clip_scale_of(*norms_.total(iteration)));
  for (const int layer : of.held_layers) {
    parameters_.push_layer(
        pushed, layer, of.versions, [&](BlockId id) { return std::move(of.held.at(id)); }, out);
    fail_if_planned<plan::Killed>(iteration, "is killed");
  }
}

void Stage::finish_operation(Outbox& out) {
  const auto work = std::move(work_);
  const ComputeWork::Operation& done = work->last();
  const MicroBatchKey key = key_of(working_on_);
  const auto& [iteration, micro_batch, model_chunk] = key;
  const std::int64_t samples = done.micro_batch->size();
  const bool forward = done.kind == OpKind::forward;
  const bool inputs = pipeline::gives_input_gradient(done.kind);
  waits_.begin(out.now());
  const Duration compute = out.now() - work_since_;
  report_.compute += compute;
  const StageWaits::Sums waited = waits_.take();
  using Operation = event::StageComputed::Operation;
  event::StageComputed computed{.worker = id_,
                                .operation = Operation::forward,
                                .iteration = iteration,
                                .chunk = model_chunk,
                                .micro_batch = micro_batch,
                                .pull = done.micro_batch->pulled,
                                .computed = compute,
                                .waited = waited.all,
                                .waited_before = waited.before,
                                .waited_after = waited.after};
  if (forward) out.emit(computed);
  if (inputs) {
    computed.operation = Operation::backward_inputs;
    out.emit(computed);
    computed.computed = computed.waited = computed.waited_before = computed.waited_after = {};
    if (model_chunk + 1 == position_.model_chunks())
      iterations_.at(iteration).add(work->result(), samples);
  }
  if (!job_->cost_only)
    report_.memory_bytes = std::max(
        report_.memory_bytes, static_cast<std::uint64_t>(in_flight_.held_bytes(key, weights_)));
  if (forward || inputs) pass_on(key, forward, samples, work->take_output(), out);
  if (!pipeline::gives_weight_gradient(done.kind)) return;
  computed.operation = Operation::backward_weights;
  out.emit(computed);
  in_flight_.erase(key);
}

void Stage::pass_on(const MicroBatchKey& of, bool forward, std::int64_t samples, Blob output,
                    Outbox& out) {
  const auto& [iteration, micro_batch, model_chunk] = of;
  const std::uint32_t reader = forward ? model_chunk + 1 : model_chunk - 1;  // wraps before chunk 0
  if (!position_.owns(reader)) {
    if (forward)
      sender_.send_activation(of, samples, std::move(output), report_, out);
    else
      sender_.send_gradient(of, samples, std::move(output), trained(), report_, out);
  } else if (forward) {
    inputs_.keep_activation({iteration, micro_batch, reader}, std::move(output));
  } else {
    inputs_.keep_gradient({iteration, micro_batch, reader}, std::move(output));
  }
}

// ---- updates ----

void Stage::update(const Op& op, StageIteration& of, Outbox& out) {
  if (!progress_.count_update(op.chunk)) return;
  const Iteration iteration = progress_.iteration_of(op);
  if (of.leased.samples() == 0) parameters_.push_empty(iteration, out);
  finish_iteration(iteration, of, out);
}

void Stage::finish_iteration(Iteration iteration, const StageIteration& of, Outbox& out) {
  const std::int64_t samples = of.leased.samples();
  out.emit(event::StepFinished{id_, iteration, samples});
  may_pull_ = true;
  report_.clock = Clock(iteration.value() + 1);
  report_.epoch = of.leased.epoch;
  const Duration blocked = weights_.take_blocked();
  if (samples > 0) {
    ++report_.iterations;
    ++spent_.iterations;
    spent_.samples += static_cast<std::uint64_t>(samples);
    spent_.waited += blocked;
    spent_.computed += out.now() - iteration_since_ - blocked;
  }
  if (position_.has_loss()) {
    report_.samples += static_cast<std::uint64_t>(samples);
    report_.correct += static_cast<std::uint64_t>(of.correct);
    report_.loss_sum += of.loss_sum;
  }
  iteration_since_ = out.now();
  inputs_.forget_below(iteration + 1);
  norms_.forget(iteration);
  weights_.forget_below(progress_.next_version());
  iterations_.erase(iteration);
  report(false, out);
}

}  // namespace leeway
