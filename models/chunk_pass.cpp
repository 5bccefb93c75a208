#include "models/chunk_pass.hpp"

#include <utility>

#include "core/check.hpp"
#include "models/gradient_sum.hpp"
#include "models/layer_runner.hpp"
#include "models/pieces.hpp"

namespace leeway {

ChunkPass::ChunkPass(std::shared_ptr<const Model> model, ModelChunk chunk, std::int64_t max_batch,
                     bool training, ChunkOptions options)
    : model_(std::move(model)) {
  LW_CHECK(model_ && max_batch >= 0, max_batch);
  LW_CHECK(chunk.first == 0 || can_split_before(*model_, chunk.first), chunk.first);
  LW_CHECK(chunk.end == model_->layers() || can_split_before(*model_, chunk.end), chunk.end);
  LW_CHECK(training || chunk == ModelChunk::whole(*model_), chunk.first, chunk.end);
  LW_CHECK(!options.split_backward || options.several, "split_backward requires `several`");
  LW_CHECK(!options.recompute || (training && options.several), "recompute is for training");
  runner_ = std::make_unique<LayerRunner>(*model_, chunk, max_batch, training, std::move(options));
}

/// Drains the queue before its memory returns to a pool that other queues use.
ChunkPass::~ChunkPass() {
  runner_->options.on->drain();
}

Stash& ChunkPass::take_stash() {
  auto& stashes = runner_->stashes;
  for (const auto& stash : stashes)
    if (!stash->taken) {
      stash->taken = true;
      return *stash;
    }
  stashes.push_back(std::make_unique<Stash>());
  stashes.back()->taken = true;
  return *stashes.back();
}

void ChunkPass::release(Stash& stash) {
  LW_CHECK(stash.taken);
  clear(stash);
  stash.taken = false;
}

void ChunkPass::clear(Stash& stash) {
  LayerRunner& runner = *runner_;
  Executor& on = *runner.options.on;
  if (runner.in_backward == &stash) runner.in_backward = nullptr;  // the caller abandoned it
  for (const auto& packed : stash.packed) on.end_read(packed.blob);
  stash.packed.clear();
  runner.memory.drop_activations(stash);
  runner.memory.drop_pending(stash);
  if (stash.output_gradient) on.end_read(stash.output_gradient);
  stash.output_gradient.reset();
  stash.input_gradient.reset();
  if (stash.input && !runner.is_first()) on.end_read(stash.input);
  if (stash.input && runner.is_first()) on.wait_mark();  // a GPU may still read it
  stash.input.reset();
  stash.x = nullptr;
  stash.state = Stash::State::empty;
}

// ---- forward ----

Blob ChunkPass::start_forward(Stash& stash, const ChunkInput& input,
                              std::span<const ParameterView> weights,
                              std::span<const std::uint64_t> versions) {
  LayerRunner& runner = *runner_;
  Executor& on = *runner.options.on;
  LW_CHECK(input.batch.size >= 0 && input.batch.size <= runner.max_batch, input.batch.size,
           runner.max_batch);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(versions.empty() || versions.size() == weights.size(), versions.size());
  LW_CHECK(stash.taken);
  clear(stash);
  stash.versions.assign(versions.begin(), versions.end());
  if (versions.empty()) stash.versions.assign(weights.size(), ++runner.forwards);
  stash.packs = versions.empty() ? &runner.unversioned : runner.options.packed.get();
  runner.forward(stash, input, weights);
  Blob sent = stash.output;
  if (sent) on.end_write(sent);
  on.mark();
  stash.state = Stash::State::forward_done;
  if (runner.options.recompute) {
    runner.memory.drop_activations(stash);
  } else if (sent && !runner.keeps_output) {
    stash.output.reset();
  }
  return sent;
}

PassResult ChunkPass::result(const Stash& stash) {
  LW_CHECK(stash.loss, "only the last chunk knows the loss, after a forward");
  runner_->options.on->wait_mark();
  const auto* loss = reinterpret_cast<const kernels::ClassLoss*>(stash.loss.data());
  return {loss->loss, loss->correct};
}

// ---- backward ----

void ChunkPass::start_backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                               std::span<const ParameterView> weights) {
  LayerRunner& runner = *runner_;
  const PassPlan& plan = runner.plan;
  Executor& on = *runner.options.on;
  LW_CHECK(runner.training && !runner.in_backward);
  LW_CHECK(purpose == BackwardFor::both || runner.options.split_backward,
           "requires ChunkOptions::split_backward");
  LW_CHECK(stash.state == (purpose == BackwardFor::weights ? Stash::State::inputs_done
                                                           : Stash::State::forward_done));
  runner.in_backward = &stash;
  runner.purpose = purpose;
  stash.state = Stash::State::in_backward;
  stash.next_backward = runner.chunk.end - 1;
  if (purpose == BackwardFor::weights) return;
  const bool needs_gradient = !runner.is_last() && plan.output_gradient != PassPlan::kNone;
  LW_CHECK(!needs_gradient || output_gradient, runner.chunk.end);
  if (needs_gradient) {
    const auto bytes =
        static_cast<std::size_t>(stash.size * runner.output_shape().count()) * sizeof(float);
    LW_CHECK(output_gradient.size() == bytes, output_gradient.size(), bytes);
    stash.output_gradient = on.fetch(output_gradient);
  }
  runner.forward_again(stash, weights);
  if (!runner.keeps_output && stash.output) {  // forward_again() wrote it, and no layer reads it
    on.end_write(stash.output);
    stash.output.reset();
  }
  const int dx = plan.input_gradient;
  if (dx != PassPlan::kNone && dx == plan.output_gradient)
    stash.input_gradient = stash.output_gradient;
  else if (dx != PassPlan::kNone)
    stash.input_gradient = on.floats(stash.size * runner.input_shape().count());
  if (runner.options.split_backward) runner.memory.take_pending(stash);
}

void ChunkPass::backward_layer(Stash& stash, int layer, std::span<const ParameterView> weights,
                               std::span<const GradientView> gradients) {
  LayerRunner& runner = *runner_;
  LW_CHECK(runner.in_backward == &stash && layer == stash.next_backward, layer, stash.next_backward,
           runner.training);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(gradients.size() == model_->parameters().size(), gradients.size());
  --stash.next_backward;
  runner.backward(stash, layer, weights, gradients);
}

Blob ChunkPass::finish_backward(Stash& stash) {
  LayerRunner& runner = *runner_;
  LW_CHECK(runner.in_backward == &stash && stash.next_backward == runner.chunk.first - 1,
           stash.next_backward);
  runner.in_backward = nullptr;
  const bool only_inputs = runner.purpose == BackwardFor::inputs;
  stash.state = only_inputs ? Stash::State::inputs_done : Stash::State::done;
  Blob dx = std::move(stash.input_gradient);
  if (dx && !dx.same_as(stash.output_gradient)) runner.options.on->end_write(dx);
  if (only_inputs && stash.output_gradient && !runner.plan.keeps_output_gradient) {
    runner.options.on->end_read(stash.output_gradient);
    stash.output_gradient.reset();
  }
  return dx;
}

Blob ChunkPass::backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                         std::span<const ParameterView> weights,
                         std::span<const GradientView> gradients) {
  start_backward(stash, purpose, std::move(output_gradient), weights);
  for (int layer = runner_->chunk.end - 1; layer >= runner_->chunk.first; --layer)
    backward_layer(stash, layer, weights, gradients);
  return finish_backward(stash);
}

Blob ChunkPass::backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                         std::span<const ParameterView> weights, GradientSum& sum) {
  start_backward(stash, purpose, std::move(output_gradient), weights);
  for (int layer = runner_->chunk.end - 1; layer >= runner_->chunk.first; --layer) {
    backward_layer(stash, layer, weights, sum.views());
    // Not later: other micro-batches may come before the backward for weights.
    if (writes_gradients(layer, purpose)) sum.add(layer, stash.size);
  }
  return finish_backward(stash);
}

bool ChunkPass::writes_gradients(int layer, BackwardFor purpose) const {
  if (!model_->has_weights(layer)) return false;
  const bool splits = model_->layer(layer).splits_backward();
  return purpose != (splits ? BackwardFor::inputs : BackwardFor::weights);
}

// ---- results ----

const float* ChunkPass::outputs(const Stash& stash) const {
  LW_CHECK(stash.activations, "no forward, or `recompute` dropped its outputs");
  return runner_->memory.output(stash, runner_->chunk.end - 1);
}

const float* ChunkPass::borrowed_gradient(int layer) const {
  const Blob& gradient = runner_->memory.borrowed(layer);
  LW_CHECK(gradient, layer);
  return gradient.as_floats();
}

int ChunkPass::first_non_finite_layer(Stash& stash, std::span<const ParameterView> weights) {
  LayerRunner& runner = *runner_;
  LW_CHECK(runner.training, "an evaluation reuses the memory of its layers");
  if (runner.memory.sent() != PassPlan::kNone && !stash.output)
    runner.memory.drop_activations(stash);
  runner.forward_again(stash, weights);
  for (int i = runner.chunk.first; i < runner.chunk.end; ++i) {
    // The overwritten output includes values of the other branch; the sum is checked instead.
    if (runner.is_overwritten_by_sum(i)) continue;
    const std::int64_t count = stash.size * model_->output_of(i).count();
    if (runner.options.on->find_non_finite(runner.memory.output(stash, i), count) >= 0) return i;
  }
  return runner.chunk.end;
}

ModelChunk ChunkPass::chunk() const {
  return runner_->chunk;
}

Executor& ChunkPass::executor() const {
  return *runner_->options.on;
}

}  // namespace leeway
