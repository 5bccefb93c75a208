#include "models/part_pass.hpp"

#include "core/check.hpp"
#include "models/gradient_sum.hpp"
#include "models/part_pass_state.hpp"
#include "models/pieces.hpp"

namespace leeway {

PartPass::PartPass(std::shared_ptr<const Model> model, ModelChunk part, std::int64_t max_batch,
                   bool training, PartOptions options)
    : model_(std::move(model)) {
  LW_CHECK(model_ && max_batch >= 0, max_batch);
  LW_CHECK(part.first == 0 || can_split_before(*model_, part.first), part.first);
  LW_CHECK(part.end == model_->layers() || can_split_before(*model_, part.end), part.end);
  LW_CHECK(training || part == ModelChunk::whole(*model_), part.first, part.end);
  LW_CHECK(!options.halves || options.several, "halves are for several micro-batches");
  LW_CHECK(!options.recompute || (training && options.several), "recompute is for training");
  state_ = std::make_unique<State>(*model_, part, max_batch, training, std::move(options));
  state_->allocate();
  // What one micro-batch needs at least, so that the first one finds it.
  state_->free_activations.push_back(state_->take_activations());
}

/// Memory goes back to its pool, where another queue may find it: so this one has to be through.
PartPass::~PartPass() {
  state_->options.on->drain();
}

Stash& PartPass::take_stash() {
  for (const auto& stash : state_->stashes)
    if (!stash->taken) {
      stash->taken = true;
      return *stash;
    }
  state_->stashes.push_back(std::make_unique<Stash>());
  state_->stashes.back()->taken = true;
  return *state_->stashes.back();
}

Blob PartPass::start_forward(Stash& stash, const PartInput& input,
                             std::span<const ParameterView> weights,
                             std::span<const std::uint64_t> versions) {
  State& s = *state_;
  Executor& on = *s.options.on;
  LW_CHECK(input.batch.size >= 0 && input.batch.size <= s.max_batch, input.batch.size, s.max_batch);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(versions.empty() || versions.size() == weights.size(), versions.size());
  LW_CHECK(stash.taken);
  empty(stash);
  stash.versions.assign(versions.begin(), versions.end());
  if (versions.empty()) stash.versions.assign(weights.size(), ++s.forwards);
  stash.packs = versions.empty() ? &s.unversioned : s.options.packed.get();
  s.take_input(stash, input);
  if (s.is_last()) s.take_targets(stash, input.batch);
  s.run_layers(stash, weights);
  if (s.is_last()) s.compute_loss(stash);
  Blob sent = stash.output;
  if (sent) on.end_write(sent);
  on.mark();
  stash.state = Stash::State::forward_done;
  if (s.options.recompute) {
    s.drop_activations(stash);
  } else if (sent && !s.keeps_output) {
    stash.output.reset();
  }
  return sent;
}

PassResult PartPass::result(const Stash& stash) {
  LW_CHECK(stash.loss, "only the last part knows the loss, after a forward");
  state_->options.on->wait_mark();
  const auto* loss = reinterpret_cast<const kernels::ClassLoss*>(stash.loss.data());
  return {loss->loss, loss->correct};
}

void PartPass::start_backward(Stash& stash, Half half, Blob output_gradient,
                              std::span<const ParameterView> weights) {
  State& s = *state_;
  Executor& on = *s.options.on;
  LW_CHECK(s.training && !s.under_way);
  LW_CHECK(half == Half::both || s.options.halves, "the pass was not made for halves");
  LW_CHECK(stash.state ==
           (half == Half::weights ? Stash::State::inputs_done : Stash::State::forward_done));
  s.under_way = &stash;
  s.half = half;
  stash.state = Stash::State::in_backward;
  stash.next_backward = s.part.end - 1;
  if (half == Half::weights) return;
  const bool wants = !s.is_last() && s.plan.output_gradient != PassPlan::kNone;
  LW_CHECK(!wants || output_gradient, s.part.end);
  if (wants) {
    const auto bytes =
        static_cast<std::size_t>(stash.size * s.output_shape().count()) * sizeof(float);
    LW_CHECK(output_gradient.size() == bytes, output_gradient.size(), bytes);
    stash.output_gradient = on.fetch(output_gradient);
  }
  s.forward_again(stash, weights);
  if (!s.keeps_output && stash.output) {  // forward again has written it for nobody
    on.end_write(stash.output);
    stash.output.reset();
  }
  const int dx = s.plan.input_gradient;
  if (dx != PassPlan::kNone && dx == s.plan.output_gradient)
    stash.input_gradient = stash.output_gradient;
  else if (dx != PassPlan::kNone)
    stash.input_gradient = on.floats(stash.size * s.input_shape().count());
  if (!s.options.halves) return;
  if (!s.free_open.empty()) {
    stash.open = std::move(s.free_open.back());
    s.free_open.pop_back();
    return;
  }
  for (std::size_t i = 0; i < s.plan.gradient_floats.size(); ++i)
    stash.open.push_back(s.plan.gradient_place[i] == PassPlan::Place::open
                             ? on.floats(s.max_batch * s.plan.gradient_floats[i])
                             : Blob());
}

void PartPass::backward_layer(Stash& stash, int index, std::span<const ParameterView> weights,
                              std::span<const GradientView> gradients) {
  State& s = *state_;
  Executor& on = *s.options.on;
  LW_CHECK(s.under_way == &stash && index == stash.next_backward, index, stash.next_backward,
           s.training);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(gradients.size() == model_->parameters().size(), gradients.size());
  --stash.next_backward;
  for (const auto& op : s.plan.backward[static_cast<std::size_t>(index)]) {
    if (op.kind == PassPlan::Op::Kind::layer) {
      s.run_backward(stash, index, op, weights, gradients);
      continue;
    }
    if (s.half == Half::weights) continue;
    float* const to = s.gradient(stash, op.to);
    const float* const from = s.readable_gradient(stash, op.from);
    const std::int64_t floats = stash.size * op.floats;
    if (op.kind == PassPlan::Op::Kind::add)
      on.accumulate(to, from, 1, floats, kernels::Write::add);
    else
      on.copy(to, from, static_cast<std::size_t>(floats) * sizeof(float));
  }
}

Blob PartPass::finish_backward(Stash& stash) {
  State& s = *state_;
  LW_CHECK(s.under_way == &stash && stash.next_backward == s.part.first - 1, stash.next_backward);
  s.under_way = nullptr;
  stash.state = s.half == Half::inputs ? Stash::State::inputs_done : Stash::State::done;
  Blob dx = std::move(stash.input_gradient);
  if (dx && !dx.same_as(stash.output_gradient)) s.options.on->end_write(dx);
  if (s.half == Half::inputs && stash.output_gradient && !s.plan.keeps_output_gradient) {
    s.options.on->end_read(stash.output_gradient);
    stash.output_gradient.reset();
  }
  return dx;
}

Blob PartPass::backward(Stash& stash, Half half, Blob output_gradient,
                        std::span<const ParameterView> weights,
                        std::span<const GradientView> gradients) {
  start_backward(stash, half, std::move(output_gradient), weights);
  for (int layer = state_->part.end - 1; layer >= state_->part.first; --layer)
    backward_layer(stash, layer, weights, gradients);
  return finish_backward(stash);
}

Blob PartPass::backward(Stash& stash, Half half, Blob output_gradient,
                        std::span<const ParameterView> weights, GradientSum& sum) {
  start_backward(stash, half, std::move(output_gradient), weights);
  for (int layer = state_->part.end - 1; layer >= state_->part.first; --layer) {
    backward_layer(stash, layer, weights, sum.views());
    // At once: the other half may be done after other micro-batches.
    if (writes_gradients(layer, half)) sum.add(layer, stash.size);
  }
  return finish_backward(stash);
}

bool PartPass::writes_gradients(int layer, Half half) const {
  if (!model_->has_weights(layer)) return false;
  return half != (model_->layer(layer).splits_backward() ? Half::inputs : Half::weights);
}

void PartPass::empty(Stash& stash) {
  State& s = *state_;
  Executor& on = *s.options.on;
  if (s.under_way == &stash) s.under_way = nullptr;  // a step that was given up
  for (const auto& blob : stash.packed) on.end_read(blob);
  stash.packed.clear();
  s.drop_activations(stash);
  if (!stash.open.empty()) s.free_open.push_back(std::move(stash.open));
  stash.open.clear();
  if (stash.output_gradient) on.end_read(stash.output_gradient);
  stash.output_gradient.reset();
  stash.input_gradient.reset();
  if (stash.input && !s.is_first()) on.end_read(stash.input);
  if (stash.input && s.is_first()) on.wait_mark();  // a GPU may not have it yet
  stash.input.reset();
  stash.x = nullptr;
  stash.state = Stash::State::empty;
}

void PartPass::release(Stash& stash) {
  LW_CHECK(stash.taken);
  empty(stash);
  stash.taken = false;
}

const float* PartPass::outputs(const Stash& stash) const {
  LW_CHECK(stash.activations, "there is no forward, or it is computed again");
  return state_->output(stash, state_->part.end - 1);
}

const float* PartPass::borrowed_gradient(int layer) const {
  const Blob& gradient = state_->borrowed[static_cast<std::size_t>(layer)];
  LW_CHECK(gradient, layer);
  return gradient.as_floats();
}

int PartPass::first_non_finite_layer(Stash& stash, std::span<const ParameterView> weights) {
  State& s = *state_;
  LW_CHECK(s.training, "an evaluation reuses the memory of its layers");
  if (s.sent() != PassPlan::kNone && !stash.output) s.drop_activations(stash);
  s.forward_again(stash, weights);
  for (int i = s.part.first; i < s.part.end; ++i) {
    // What a sum has overwritten holds another way's numbers too: the sum itself answers for it.
    if (s.overwritten_by_sum(i)) continue;
    const std::int64_t count = stash.size * model_->output_of(i).count();
    if (s.options.on->find_non_finite(s.output(stash, i), count) >= 0) return i;
  }
  return s.part.end;
}

ModelChunk PartPass::part() const {
  return state_->part;
}

Executor& PartPass::executor() const {
  return *state_->options.on;
}

}  // namespace leeway
