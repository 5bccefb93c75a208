#include "models/layer_runner.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "models/gradient_sum.hpp"

namespace leeway {

namespace {

/// Weights without versions are packed again for each forward, so the cache keeps no more of them
/// than one forward uses.
constexpr std::size_t kOwnVersions = 1;

ChunkOptions with_defaults(ChunkOptions options) {
  if (!options.on) options.on = make_cpu_executor();
  if (!options.packed) options.packed = std::make_shared<PackCache>(kOwnVersions);
  return options;
}

}  // namespace

LayerRunner::LayerRunner(const Model& of, ModelChunk range, std::int64_t batch, bool trains,
                         ChunkOptions given)
    : model(of),
      chunk(range),
      plan(of, range,
           {.backward = trains, .several = given.several, .split_backward = given.split_backward}),
      options(with_defaults(std::move(given))),
      max_batch(batch),
      training(trains),
      keeps_output(trains && !is_last() && plan.backward_reads_output(model)),
      memory(model, plan, *options.on, max_batch, training),
      unversioned(kOwnVersions) {}

bool LayerRunner::is_overwritten_by_sum(int layer) const {
  for (int later = layer + 1; later < chunk.end; ++later)
    if (model.is_sum(later) && plan.output_of(later) == plan.output_of(layer)) return true;
  return false;
}

int LayerRunner::first_weight(int layer) const {
  const int borrowed = model.borrowed_parameter(layer);
  return borrowed == Model::kNone ? model.first_parameter(layer) : borrowed;
}

template <class View>
std::span<const View> LayerRunner::views_of(int layer, std::span<const View> all) const {
  const int other = model.borrowed_parameter(layer);
  if (other != Model::kNone) return all.subspan(static_cast<std::size_t>(other), 1);
  const auto first = static_cast<std::size_t>(model.first_parameter(layer));
  return all.subspan(first, static_cast<std::size_t>(model.first_parameter(layer + 1)) - first);
}

const std::byte* LayerRunner::get(int parameter, const kernels::PackForm& form,
                                  const std::function<void(std::byte*)>& pack) {
  Stash& stash = *packing_;
  const int index = first_weight_ + parameter;
  for (const auto& packed : stash.packed)
    if (packed.parameter == index && packed.form == form) return packed.blob.data();
  const PackCache::Key key{index, form, options.on->device()};
  Blob blob =
      stash.packs->get(key, stash.versions[static_cast<std::size_t>(index)], *options.on, pack);
  options.on->begin_read(blob);
  stash.packed.push_back({index, form, std::move(blob)});
  return stash.packed.back().blob.data();
}

template <class Compute>
void LayerRunner::timed(int layer, const char* what, std::int64_t flops, Compute compute) {
  if (!options.profile) return compute();
  Profile::Timer timer(options.profile.get(), *options.on);
  compute();
  timer.end(model.layer_name(layer), what, static_cast<double>(flops));
}

// ---- forward ----

void LayerRunner::forward(Stash& stash, const ChunkInput& input,
                          std::span<const ParameterView> weights) {
  const Stash::Form form{model, chunk, max_batch, training, options.recompute};
  stash.read_input(form, *options.on, input);
  if (is_last()) stash.read_labels(form, *options.on, input.batch);
  stash.loss_scale = input.batch.loss_scale;
  run_layers(stash, weights);
  if (is_last()) compute_loss(stash);
}

void LayerRunner::run_layers(Stash& stash, std::span<const ParameterView> weights) {
  Executor& on = *options.on;
  memory.take_activations(stash);
  for (int i = chunk.first; i < chunk.end; ++i)
    if (!model.layer(i).is_view()) run_layer(stash, i, weights);
  if (!is_last() && memory.sent() == PassPlan::kNone)
    on.copy(stash.output.mutable_data(), stash.x, stash.output.size());
}

void LayerRunner::run_layer(Stash& stash, int i, std::span<const ParameterView> weights) {
  Executor& on = *options.on;
  const Layer& layer = model.layer(i);
  float* const y = memory.writable_output(stash, i);
  const float* const x = memory.output(stash, model.input_of(i));
  const std::int64_t count = stash.size * model.output_of(i).count();
  timed(i, "forward", stash.size * layer.flops(), [&] {
    if (model.is_sum(i)) {
      if (y != x) on.copy(y, x, static_cast<std::size_t>(count) * sizeof(float));
      return on.accumulate(y, memory.output(stash, model.other_input_of(i)), 1, count,
                           kernels::Write::add);
    }
    packing_ = &stash;
    first_weight_ = first_weight(i);
    layer.forward({.on = on,
                   .batch = stash.size,
                   .x = x,
                   .y = y,
                   .kept = memory.kept(stash, i),
                   .scratch = memory.scratch(),
                   .weights = views_of(i, weights),
                   .packed = *this,
                   .training = training,
                   .sample_keys = stash.keys});
  });
}

void LayerRunner::compute_loss(Stash& stash) {
  Executor& on = *options.on;
  if (!stash.loss) stash.loss = on.allocate_host(sizeof(kernels::ClassLoss));
  auto* result = reinterpret_cast<kernels::ClassLoss*>(stash.loss.mutable_data());
  float* dy = memory.gradient(stash, plan.output_gradient);
  const float* y = memory.output(stash, model.layers() - 1);
  const std::int64_t size = stash.size, count = model.output().count();
  const float scale = stash.loss_scale;
  timed(model.layers() - 1, "loss", 0, [&] {
    switch (model.loss()) {
      case plan::Loss::softmax_cross_entropy:
        return on.softmax_cross_entropy(result, dy, y, stash.labels, size * model.labels(),
                                        count / model.labels(), scale);
      case plan::Loss::sigmoid_cross_entropy:
        return on.sigmoid_cross_entropy(result, dy, y, stash.targets, size * count, scale);
      case plan::Loss::mean_squared_error:
        return on.mean_squared_error(result, dy, y, stash.targets, size * count, scale);
    }
  });
}

void LayerRunner::forward_again(Stash& stash, std::span<const ParameterView> weights) {
  if (stash.activations) return;
  run_layers(stash, weights);
  if (is_last()) compute_loss(stash);
}

// ---- backward ----

void LayerRunner::backward(Stash& stash, int layer, std::span<const ParameterView> weights,
                           std::span<const GradientView> gradients) {
  Executor& on = *options.on;
  for (const auto& op : plan.backward[static_cast<std::size_t>(layer)]) {
    if (op.kind == PassPlan::Op::Kind::layer) {
      backward_layer(stash, layer, op, weights, gradients);
      continue;
    }
    if (purpose == BackwardFor::weights) continue;
    float* const to = memory.gradient(stash, op.to);
    const float* const from = memory.readable_gradient(stash, op.from);
    const std::int64_t floats = stash.size * op.floats;
    if (op.kind == PassPlan::Op::Kind::add)
      on.accumulate(to, from, 1, floats, kernels::Write::add);
    else
      on.copy(to, from, static_cast<std::size_t>(floats) * sizeof(float));
  }
}

void LayerRunner::add_borrowed(int layer, std::span<const GradientView> all) {
  for (int user = layer + 1; user < chunk.end; ++user) {
    const int parameter = model.borrowed_parameter(user);
    if (parameter < model.first_parameter(layer) || parameter >= model.first_parameter(layer + 1))
      continue;
    const Shape& shape = model.parameters()[static_cast<std::size_t>(parameter)].spec.shape;
    float* const contribution = memory.borrowed(user).mutable_floats();
    const RowSlice<float> rows{0, shape.rows(), contribution};
    add_gradient(*options.on, all[static_cast<std::size_t>(parameter)], {&rows, 1}, shape);
  }
}

void LayerRunner::backward_layer(Stash& stash, int index, const PassPlan::Op& op,
                                 std::span<const ParameterView> weights,
                                 std::span<const GradientView> all) {
  const Layer& layer = model.layer(index);
  const bool trains = model.has_weights(index);
  const bool splits = layer.splits_backward() && trains;
  // A layer that does not split computes everything in the backward for inputs.
  if (purpose == BackwardFor::weights && !splits) return;
  const bool wants_weights =
      trains ? purpose != BackwardFor::inputs || !splits : !layer.splits_backward();
  float* const dx = purpose == BackwardFor::weights ? nullptr : memory.gradient(stash, op.to);
  if (!wants_weights && !dx) return;
  auto own = views_of(index, all);
  RowSlice<float> whole;
  GradientView borrowed_view;
  if (Blob& blob = memory.borrowed(index); blob) {
    const auto parameter = static_cast<std::size_t>(model.borrowed_parameter(index));
    whole = {0, model.parameters()[parameter].spec.shape.rows(), blob.mutable_floats()};
    borrowed_view = {&whole, 1};
    own = {&borrowed_view, 1};
  }
  packing_ = &stash;
  first_weight_ = first_weight(index);
  // Matrix products: one for the weights' gradients, and one for the input's gradient.
  const int products = (wants_weights ? 1 : 0) + (dx ? 1 : 0);
  timed(index, "backward", stash.size * layer.flops() * products, [&] {
    layer.backward({.on = *options.on,
                    .batch = stash.size,
                    .x = memory.output(stash, model.input_of(index)),
                    .y = memory.output(stash, index),
                    .dy = memory.readable_gradient(stash, op.from),
                    .dx = dx,
                    .kept = memory.kept(stash, index),
                    .scratch = memory.scratch(),
                    .weights = views_of(index, weights),
                    .packed = *this,
                    .gradients = wants_weights ? own : std::span<const GradientView>{},
                    .sample_keys = stash.keys});
  });
  if (wants_weights) add_borrowed(index, all);
}

}  // namespace leeway
