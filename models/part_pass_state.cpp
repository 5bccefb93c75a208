#include "models/part_pass_state.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "models/gradient_sum.hpp"

namespace leeway {

namespace {

/// Weights for which no versions are given are packed anew each time; no more of them are kept than
/// one forward uses.
constexpr std::size_t kOwnVersions = 1;

bool is_host(Device device) {
  return device.kind != Device::Kind::cuda;
}

}  // namespace

// ---- memory ----

PartPass::State::State(const Model& of, ModelChunk range, std::int64_t batch, bool trains,
                       PartOptions given)
    : model(of),
      part(range),
      plan(of, range, {.backward = trains, .several = given.several, .halves = given.halves}),
      options(std::move(given)),
      max_batch(batch),
      training(trains),
      unversioned(kOwnVersions) {
  if (!options.on) options.on = make_cpu_executor();
  if (!options.packed) options.packed = std::make_shared<PackCache>(kOwnVersions);
  keeps_output = training && !is_last() && plan.backward_reads_output(model);
}

void PartPass::State::allocate() {
  Executor& on = *options.on;
  for (std::size_t i = 0; i < plan.gradient_floats.size(); ++i) {
    const bool works = plan.gradient_place[i] == PassPlan::Place::working;
    gradients.push_back(works ? on.floats(max_batch * plan.gradient_floats[i]) : Blob());
  }
  std::size_t largest_scratch = 0;
  borrowed.resize(static_cast<std::size_t>(model.layers()));
  for (int i = part.first; i < part.end; ++i) {
    largest_scratch =
        std::max(largest_scratch, model.layer(i).scratch_bytes(on, max_batch, training));
    const int parameter = model.borrowed_parameter(i);
    if (!training || parameter == Model::kNone) continue;
    const auto& owned = model.parameters()[static_cast<std::size_t>(parameter)];
    if (part.has(owned.layer))
      borrowed[static_cast<std::size_t>(i)] = on.floats(owned.spec.shape.count());
  }
  scratch = on.allocate(largest_scratch);
}

Activations PartPass::State::take_activations() {
  if (!free_activations.empty()) {
    Activations activations = std::move(free_activations.back());
    free_activations.pop_back();
    return activations;
  }
  Executor& on = *options.on;
  Activations activations;
  for (std::size_t i = 0; i < plan.output_floats.size(); ++i)
    activations.outputs.push_back(
        static_cast<int>(i) == sent() ? Blob() : on.floats(max_batch * plan.output_floats[i]));
  std::size_t largest = 0;
  for (int i = part.first; i < part.end; ++i)
    largest = std::max(largest, model.layer(i).kept_bytes(max_batch));
  // Without backward, nobody looks at what a layer kept: all may keep it in the same place.
  const Blob shared = training ? Blob() : on.allocate(largest);
  for (int i = part.first; i < part.end; ++i)
    activations.kept.push_back(training ? on.allocate(model.layer(i).kept_bytes(max_batch))
                                        : shared);
  const int dy = plan.output_gradient;
  if (dy != PassPlan::kNone &&
      plan.gradient_place[static_cast<std::size_t>(dy)] == PassPlan::Place::kept)
    activations.loss_gradient = on.floats(max_batch * output_shape().count());
  return activations;
}

void PartPass::State::drop_activations(Stash& stash) {
  if (stash.activations) free_activations.push_back(std::move(*stash.activations));
  stash.activations.reset();
  if (stash.output) options.on->end_read(stash.output);
  stash.output.reset();
}

float* PartPass::State::gradient(Stash& stash, int buffer) {
  if (buffer == PassPlan::kNone) return nullptr;
  const auto index = static_cast<std::size_t>(buffer);
  switch (plan.gradient_place[index]) {
    case PassPlan::Place::working:
      return gradients[index].mutable_floats();
    case PassPlan::Place::kept:
      return stash.activations->loss_gradient.mutable_floats();
    case PassPlan::Place::open:
      return stash.open[index].mutable_floats();
    case PassPlan::Place::outside:
      break;
  }
  return stash.input_gradient.mutable_floats();
}

const std::byte* PartPass::State::get(int parameter, kernels::PackForm form,
                                      const std::function<void(std::byte*)>& pack) {
  Stash& stash = *packing;
  const int index = first_parameter + parameter;
  const PackCache::Key key{index, form, options.on->device()};
  stash.packed.push_back(
      stash.packs->get(key, stash.versions[static_cast<std::size_t>(index)], *options.on, pack));
  options.on->begin_read(stash.packed.back());
  return stash.packed.back().data();
}

// ---- forward ----

/// Brings the batch, or the activation, to the device, and images into the layout that layers want.
void PartPass::State::take_input(Stash& stash, const PartInput& given) {
  Executor& on = *options.on;
  stash.size = given.batch.size;
  const std::int64_t floats = input_shape().count();
  if (given.input)
    LW_CHECK(given.input.size() == static_cast<std::size_t>(stash.size * floats) * sizeof(float),
             given.input.size(), stash.size, floats);
  if (is_first()) {
    stash.input = given.input;
    stash.x = given.input ? given.input.as_floats() : given.batch.x;
    if (!is_host(on.device()) && stash.size > 0) {
      if (!stash.samples) stash.samples = on.floats(max_batch * floats);
      on.upload(stash.samples.mutable_data(), stash.x,
                static_cast<std::size_t>(stash.size * floats) * sizeof(float));
      stash.x = stash.samples.as_floats();
    }
    if (moves_samples(input_shape())) {
      if (!stash.moved) stash.moved = on.floats(max_batch * floats);
      const Shape& image = input_shape();
      on.to_channels_last(stash.moved.mutable_floats(), stash.x, stash.size, image[0],
                          image[1] * image[2]);
      stash.x = stash.moved.as_floats();
      if (is_host(on.device())) stash.input.reset();  // nobody reads it again
    }
  } else {
    LW_CHECK(given.input, part.first);
    stash.input = on.fetch(given.input);
    stash.x = stash.input.as_floats();
  }
  const auto& keys = given.batch.sample_keys;
  LW_CHECK(!training || keys.empty() || static_cast<std::int64_t>(keys.size()) == stash.size,
           keys.size(), stash.size);
  stash.keys = nullptr;
  if (keys.empty()) return;
  if (!stash.sample_keys)
    stash.sample_keys = on.allocate(static_cast<std::size_t>(max_batch) * sizeof(std::uint64_t));
  on.upload(stash.sample_keys.mutable_data(), keys.data(), keys.size_bytes());
  stash.keys = reinterpret_cast<const std::uint64_t*>(stash.sample_keys.data());
}

void PartPass::State::take_targets(Stash& stash, const Batch& given) {
  Executor& on = *options.on;
  const std::int64_t size = stash.size;
  stash.labels = given.labels;
  stash.targets = given.targets;
  const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
  const bool yes_or_no = model.loss() == plan::Loss::sigmoid_cross_entropy;
  const bool told =
      by_class ? given.labels != nullptr : given.targets || (yes_or_no && given.labels);
  LW_CHECK(told || size == 0, size, by_class);
  const std::int64_t count = by_class ? model.labels() : model.output().count();
  const auto bytes = [&](std::int64_t samples) {
    return static_cast<std::size_t>(samples * count) * sizeof(float);
  };
  static_assert(sizeof(float) == sizeof(std::int32_t));
  const auto upload = [&](const auto*& from) {
    if (!stash.told) stash.told = on.allocate(bytes(max_batch));
    on.upload(stash.told.mutable_data(), from, bytes(size));
    from = reinterpret_cast<std::decay_t<decltype(from)>>(stash.told.data());
  };
  if (size == 0) return;
  if (!by_class && !stash.targets) {
    // Two classes told by one number: class 1 is yes.
    on.wait_mark();  // the numbers of a forward before may be on their way
    if (!stash.numbers) stash.numbers = on.allocate_host(bytes(max_batch));
    std::copy_n(stash.labels, size, stash.numbers.mutable_floats());
    stash.targets = stash.numbers.as_floats();
  }
  // Who computes forward again computes the loss's gradient then.
  if (is_host(on.device()) && !options.recompute) return;
  if (by_class)
    upload(stash.labels);
  else
    upload(stash.targets);
}

void PartPass::State::run_layers(Stash& stash, std::span<const ParameterView> weights) {
  Executor& on = *options.on;
  stash.activations = take_activations();
  if (!is_last())
    stash.output =
        on.allocate(static_cast<std::size_t>(stash.size * output_shape().count()) * sizeof(float));
  for (int i = part.first; i < part.end; ++i)
    if (!model.layer(i).is_view()) run_layer(stash, i, weights);
  if (!is_last() && sent() == PassPlan::kNone)
    on.copy(stash.output.mutable_data(), stash.x, stash.output.size());
}

void PartPass::State::run_layer(Stash& stash, int i, std::span<const ParameterView> weights) {
  Executor& on = *options.on;
  const Layer& layer = model.layer(i);
  float* const y = writable_output(stash, i);
  const float* const x = output(stash, model.input_of(i));
  const std::int64_t count = stash.size * model.output_of(i).count();
  timed(i, "forward", stash.size * layer.flops(), [&] {
    if (model.is_sum(i)) {
      if (y != x) on.copy(y, x, static_cast<std::size_t>(count) * sizeof(float));
      return on.accumulate(y, output(stash, model.other_input_of(i)), 1, count,
                           kernels::Write::add);
    }
    packing = &stash;
    first_parameter = model.first_parameter(i);
    Blob& kept = stash.activations->kept[static_cast<std::size_t>(i - part.first)];
    layer.forward({.on = on,
                   .batch = stash.size,
                   .x = x,
                   .y = y,
                   .kept = kept.mutable_data(),
                   .scratch = scratch.mutable_data(),
                   .weights = views_of(i, weights),
                   .packed = *this,
                   .training = training,
                   .sample_keys = stash.keys});
  });
}

void PartPass::State::compute_loss(Stash& stash) {
  Executor& on = *options.on;
  if (!stash.loss) stash.loss = on.allocate_host(sizeof(kernels::ClassLoss));
  auto* result = reinterpret_cast<kernels::ClassLoss*>(stash.loss.mutable_data());
  float* dy = gradient(stash, plan.output_gradient);
  const float* y = output(stash, model.layers() - 1);
  const std::int64_t size = stash.size, count = model.output().count();
  timed(model.layers() - 1, "loss", 0, [&] {
    switch (model.loss()) {
      case plan::Loss::softmax_cross_entropy:
        return on.softmax_cross_entropy(result, dy, y, stash.labels, size * model.labels(),
                                        count / model.labels());
      case plan::Loss::sigmoid_cross_entropy:
        return on.sigmoid_cross_entropy(result, dy, y, stash.targets, size * count);
      case plan::Loss::mean_squared_error:
        return on.mean_squared_error(result, dy, y, stash.targets, size * count);
    }
  });
}

void PartPass::State::forward_again(Stash& stash, std::span<const ParameterView> weights) {
  if (stash.activations) return;
  run_layers(stash, weights);
  if (is_last()) compute_loss(stash);
}

// ---- backward ----

void PartPass::State::add_borrowed(int layer, std::span<const GradientView> all) {
  for (int user = layer + 1; user < part.end; ++user) {
    const int parameter = model.borrowed_parameter(user);
    if (parameter < model.first_parameter(layer) || parameter >= model.first_parameter(layer + 1))
      continue;
    const Shape& shape = model.parameters()[static_cast<std::size_t>(parameter)].spec.shape;
    const RowSlice<float> found{0, shape.rows(), borrowed_of(user)->mutable_floats()};
    add_gradient(*options.on, all[static_cast<std::size_t>(parameter)], {&found, 1}, shape);
  }
}

void PartPass::State::run_backward(Stash& stash, int index, const PassPlan::Op& op,
                                   std::span<const ParameterView> weights,
                                   std::span<const GradientView> all) {
  const Layer& layer = model.layer(index);
  const bool splits = layer.splits_backward() && model.has_weights(index);
  const bool wants_weights = half != Half::inputs || !splits;
  float* const dx = half == Half::weights ? nullptr : gradient(stash, op.to);
  if (half == Half::weights && !splits) return;  // all was done with the inputs' half
  if (!wants_weights && !dx) return;             // all is for the weights' half
  auto own = views_of(index, all);
  RowSlice<float> whole;
  GradientView borrowed_view;
  if (const int parameter = model.borrowed_parameter(index); parameter != Model::kNone)
    if (Blob* const blob = borrowed_of(index)) {
      const Shape& shape = model.parameters()[static_cast<std::size_t>(parameter)].spec.shape;
      whole = {0, shape.rows(), blob->mutable_floats()};
      borrowed_view = {&whole, 1};
      own = {&borrowed_view, 1};
    }
  packing = &stash;
  first_parameter = model.first_parameter(index);
  // The products with the weights' gradients, and with the input's where it is wanted.
  const int products = (wants_weights ? 1 : 0) + (dx ? 1 : 0);
  Blob& kept = stash.activations->kept[static_cast<std::size_t>(index - part.first)];
  timed(index, "backward", stash.size * layer.flops() * products, [&] {
    layer.backward({.on = *options.on,
                    .batch = stash.size,
                    .x = output(stash, model.input_of(index)),
                    .y = output(stash, index),
                    .dy = readable_gradient(stash, op.from),
                    .dx = dx,
                    .kept = kept.mutable_data(),
                    .scratch = scratch.mutable_data(),
                    .weights = views_of(index, weights),
                    .packed = *this,
                    .gradients = wants_weights ? own : std::span<const GradientView>{},
                    .sample_keys = stash.keys});
  });
  if (wants_weights) add_borrowed(index, all);
}

}  // namespace leeway
