#include "models/pass.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "models/pass_plan.hpp"

namespace leeway {

namespace {

constexpr int kNone = PassPlan::kNone;

/// Weights for which no versions are given are packed anew each time; no more of them are kept than
/// one pass uses.
constexpr std::size_t kOwnVersions = 1;

template <class T>
T* at(Blob& blob) {
  return reinterpret_cast<T*>(blob.mutable_data());
}

bool is_host(Device device) {
  return device.kind != Device::Kind::cuda;
}

/// Images that have to move, since data sets keep their channels first.
bool moves(const Shape& input) {
  return input.rank() == 3 && input[0] > 1 && input[1] * input[2] > 1;
}

}  // namespace

struct Pass::State final : PackedWeights {
  State(const Model& model, std::int64_t batch, bool backward, PassOptions given)
      : plan(model, backward), options(std::move(given)), max_batch(batch), training(backward) {
    if (!options.on) options.on = make_cpu_executor();
    if (!options.packed) options.packed = std::make_shared<PackCache>(kOwnVersions);
  }

  const std::byte* get(int parameter, kernels::PackForm form,
                       const std::function<void(std::byte*)>& pack) override;
  void allocate(const Model& model);
  void take_batch(const Model& model, const Batch& given);
  void compute_loss(const Model& model);
  /// The views that a layer is given: of its own parameters, or of the one that it borrows.
  template <class View>
  std::span<const View> views_of(const Model& model, int layer, std::span<const View> all) const {
    const int other = model.borrowed_parameter(layer);
    if (other != Model::kNone) return all.subspan(static_cast<std::size_t>(other), 1);
    const auto first = static_cast<std::size_t>(model.first_parameter(layer));
    return all.subspan(first, static_cast<std::size_t>(model.first_parameter(layer + 1)) - first);
  }
  /// Adds what other layers have found of the gradients of this layer's parameters.
  void add_borrowed(const Model& model, int layer, std::span<const GradientView> gradients);
  template <class Compute>
  void timed(const Model& model, int layer, const char* what, std::int64_t flops, Compute compute);

  const float* output(int layer) const {
    const int buffer =
        layer == Model::kBatch ? kNone : plan.output[static_cast<std::size_t>(layer)];
    return buffer == kNone ? x : outputs[static_cast<std::size_t>(buffer)].as_floats();
  }
  bool overwritten_by_sum(const Model& model, int layer) const {
    for (int later = layer + 1; later < model.layers(); ++later)
      if (model.is_sum(later) && plan.output[static_cast<std::size_t>(later)] ==
                                     plan.output[static_cast<std::size_t>(layer)])
        return true;
    return false;
  }
  float* gradient(int buffer) {
    return buffer == kNone ? nullptr : gradients[static_cast<std::size_t>(buffer)].mutable_floats();
  }

  PassPlan plan;
  PassOptions options;
  const std::int64_t max_batch;
  const bool training;
  std::vector<Blob> outputs;    // by the plan's buffers: (max_batch, floats)
  std::vector<Blob> gradients;  // likewise
  std::vector<Blob> kept;       // per layer
  std::vector<Blob> borrowed;   // per layer that borrows a parameter: its gradient; else empty
  Blob scratch;
  Blob loss;            // kernels::ClassLoss
  Blob device_batch;    // on a GPU: (max_batch, input)
  Blob device_targets;  // on a GPU: (max_batch, output), labels or numbers
  Blob device_keys;     // on a GPU: (max_batch)
  Blob moved;           // images, channels last: (max_batch, input)
  Blob binary_targets;  // (max_batch, 1): labels as numbers

  // Of the last forward:
  std::int64_t size = 0;
  const float* x = nullptr;
  const std::int32_t* labels = nullptr;
  const float* targets = nullptr;
  const std::uint64_t* keys = nullptr;
  int next_backward = -1;  // the layer whose backward is due; -1 when none is

  // Packed weights of the last forward, and what they are keyed by.
  std::vector<Blob> packed_in_use;
  PackCache unversioned{kOwnVersions};  // shared with nobody: its numbers are this pass's own
  PackCache* packs = nullptr;           // that one, or the options'
  std::span<const std::uint64_t> versions;
  std::vector<std::uint64_t> own_versions;
  std::uint64_t forwards = 0;
  int first_parameter = 0;  // of the layer under way
};

const std::byte* Pass::State::get(int parameter, kernels::PackForm form,
                                  const std::function<void(std::byte*)>& pack) {
  const int index = first_parameter + parameter;
  const PackCache::Key key{index, form, options.on->device()};
  packed_in_use.push_back(
      packs->get(key, versions[static_cast<std::size_t>(index)], *options.on, pack));
  options.on->begin_read(packed_in_use.back());
  return packed_in_use.back().data();
}

void Pass::State::allocate(const Model& model) {
  Executor& on = *options.on;
  for (const auto floats : plan.output_floats) outputs.push_back(on.floats(max_batch * floats));
  for (const auto floats : plan.gradient_floats) gradients.push_back(on.floats(max_batch * floats));
  std::size_t largest_scratch = 0, largest_kept = 0;
  for (int i = 0; i < model.layers(); ++i) {
    const Layer& layer = model.layer(i);
    largest_scratch = std::max(largest_scratch, layer.scratch_bytes(on, max_batch, training));
    largest_kept = std::max(largest_kept, layer.kept_bytes(max_batch));
  }
  // Without backward, nobody looks at what a layer kept: all may keep it in the same place.
  const Blob shared = training ? Blob() : on.allocate(largest_kept);
  for (int i = 0; i < model.layers(); ++i)
    kept.push_back(training ? on.allocate(model.layer(i).kept_bytes(max_batch)) : shared);
  borrowed.resize(static_cast<std::size_t>(model.layers()));
  for (int i = 0; training && i < model.layers(); ++i)
    if (const int parameter = model.borrowed_parameter(i); parameter != Model::kNone)
      borrowed[static_cast<std::size_t>(i)] =
          on.floats(model.parameters()[static_cast<std::size_t>(parameter)].spec.shape.count());
  scratch = on.allocate(largest_scratch);
  loss = on.allocate_host(sizeof(kernels::ClassLoss));
  const std::int64_t input = model.input().count();
  if (moves(model.input())) moved = on.floats(max_batch * input);
  if (model.loss() == plan::Loss::sigmoid_cross_entropy) binary_targets = Blob::floats(max_batch);
  if (is_host(on.device())) return;
  device_batch = on.floats(max_batch * input);
  device_targets = on.floats(max_batch * model.output().count());
  device_keys = on.allocate(static_cast<std::size_t>(max_batch) * sizeof(std::uint64_t));
}

/// Brings the batch to the device, and images into the layout that layers want.
void Pass::State::take_batch(const Model& model, const Batch& given) {
  Executor& on = *options.on;
  size = given.size;
  x = given.x;
  labels = given.labels;
  targets = given.targets;
  keys = given.sample_keys.data();
  const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
  const bool yes_or_no = model.loss() == plan::Loss::sigmoid_cross_entropy;
  const bool told = by_class ? labels != nullptr : targets || (yes_or_no && labels);
  LW_CHECK(told || size == 0, size, by_class);
  LW_CHECK(!training || given.sample_keys.empty() ||
               static_cast<std::int64_t>(given.sample_keys.size()) == size,
           given.sample_keys.size(), size);
  if (!by_class && !targets) {
    // Two classes told by one number: class 1 is yes.
    float* numbers = binary_targets.mutable_floats();
    std::copy_n(labels, size, numbers);
    targets = numbers;
  }
  if (!is_host(on.device()) && size > 0) {
    const auto upload = [&](Blob& to, const auto*& from, std::int64_t count) {
      on.upload(to.mutable_data(), from, static_cast<std::size_t>(count) * sizeof(*from));
      from = reinterpret_cast<std::decay_t<decltype(from)>>(to.data());
    };
    upload(device_batch, x, size * model.input().count());
    if (by_class)
      upload(device_targets, labels, size * model.labels());
    else
      upload(device_targets, targets, size * model.output().count());
    if (!given.sample_keys.empty()) upload(device_keys, keys, size);
  }
  if (moved) {
    const Shape& image = model.input();
    on.to_channels_last(moved.mutable_floats(), x, size, image[0], image[1] * image[2]);
    x = moved.as_floats();
  }
}

void Pass::State::compute_loss(const Model& model) {
  Executor& on = *options.on;
  auto* result = at<kernels::ClassLoss>(loss);
  float* dy = gradient(plan.loss_gradient);
  const float* y = output(model.layers() - 1);
  const std::int64_t count = model.output().count();
  switch (model.loss()) {
    case plan::Loss::softmax_cross_entropy:
      on.softmax_cross_entropy(result, dy, y, labels, size * model.labels(),
                               count / model.labels());
      break;
    case plan::Loss::sigmoid_cross_entropy:
      on.sigmoid_cross_entropy(result, dy, y, targets, size * count);
      break;
    case plan::Loss::mean_squared_error:
      on.mean_squared_error(result, dy, y, targets, size * count);
      break;
  }
}

void Pass::State::add_borrowed(const Model& model, int layer, std::span<const GradientView> all) {
  for (int user = layer + 1; user < model.layers(); ++user) {
    const int parameter = model.borrowed_parameter(user);
    if (parameter < model.first_parameter(layer) || parameter >= model.first_parameter(layer + 1))
      continue;
    const std::int64_t row =
        model.parameters()[static_cast<std::size_t>(parameter)].spec.shape.row_count();
    const float* const found = borrowed[static_cast<std::size_t>(user)].as_floats();
    for (const auto& slice : all[static_cast<std::size_t>(parameter)])
      options.on->accumulate(slice.data, found + slice.first_row * row, 1, slice.rows * row,
                             kernels::Write::add);
  }
}

template <class Compute>
void Pass::State::timed(const Model& model, int layer, const char* what, std::int64_t flops,
                        Compute compute) {
  if (!options.profile) return compute();
  Profile::Timer timer(options.profile.get(), *options.on);
  compute();
  timer.end(model.layer_name(layer), what, static_cast<double>(flops));
}

Pass::Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward,
           PassOptions options)
    : model_(std::move(model)) {
  LW_CHECK(model_ && max_batch >= 0, max_batch);
  state_ = std::make_unique<State>(*model_, max_batch, backward, std::move(options));
  state_->allocate(*model_);
}

/// Memory goes back to its pool, where another queue may find it: so this one has to be through.
Pass::~Pass() {
  state_->options.on->drain();
}

void Pass::start_forward(const Batch& batch, std::span<const ParameterView> weights,
                         std::span<const std::uint64_t> versions) {
  State& s = *state_;
  Executor& on = *s.options.on;
  LW_CHECK(batch.size >= 0 && batch.size <= s.max_batch, batch.size, s.max_batch);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(versions.empty() || versions.size() == weights.size(), versions.size());
  for (const auto& blob : s.packed_in_use) on.end_read(blob);
  s.packed_in_use.clear();
  s.own_versions.assign(versions.begin(), versions.end());
  if (versions.empty()) s.own_versions.assign(weights.size(), ++s.forwards);
  s.packs = versions.empty() ? &s.unversioned : s.options.packed.get();
  s.versions = s.own_versions;
  s.take_batch(*model_, batch);
  for (int i = 0; i < model_->layers(); ++i) {
    const Layer& layer = model_->layer(i);
    if (layer.is_view()) continue;
    const auto index = static_cast<std::size_t>(i);
    const auto buffer = static_cast<std::size_t>(s.plan.output[index]);
    float* const y = s.outputs[buffer].mutable_floats();
    const float* const x = s.output(model_->input_of(i));
    const std::int64_t count = batch.size * model_->output_of(i).count();
    s.timed(*model_, i, "forward", batch.size * layer.flops(), [&] {
      if (model_->is_sum(i)) {
        if (y != x) on.copy(y, x, static_cast<std::size_t>(count) * sizeof(float));
        return on.accumulate(y, s.output(model_->other_input_of(i)), 1, count, kernels::Write::add);
      }
      s.first_parameter = model_->first_parameter(i);
      layer.forward({.on = on,
                     .batch = batch.size,
                     .x = x,
                     .y = y,
                     .kept = s.kept[index].mutable_data(),
                     .scratch = s.scratch.mutable_data(),
                     .weights = s.views_of(*model_, i, weights),
                     .packed = s,
                     .training = s.training,
                     .sample_keys = s.keys});
    });
  }
  s.next_backward = s.training ? model_->layers() - 1 : -1;
  s.timed(*model_, model_->layers() - 1, "loss", 0, [&] { s.compute_loss(*model_); });
  on.mark();
}

PassResult Pass::result() {
  state_->options.on->wait_mark();
  const auto* loss = at<kernels::ClassLoss>(state_->loss);
  return {loss->loss, loss->correct};
}

void Pass::backward(int index, std::span<const ParameterView> weights,
                    std::span<const GradientView> gradients) {
  State& s = *state_;
  Executor& on = *s.options.on;
  LW_CHECK(index == s.next_backward && index >= 0, index, s.next_backward, s.training);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(gradients.size() == model_->parameters().size(), gradients.size());
  --s.next_backward;
  const Layer& layer = model_->layer(index);
  s.first_parameter = model_->first_parameter(index);
  auto own_gradients = s.views_of(*model_, index, gradients);
  RowSlice<float> whole;
  GradientView borrowed;
  if (const int parameter = model_->borrowed_parameter(index); parameter != Model::kNone) {
    const Shape& shape = model_->parameters()[static_cast<std::size_t>(parameter)].spec.shape;
    whole = {0, shape.rows(), s.borrowed[static_cast<std::size_t>(index)].mutable_floats()};
    borrowed = {&whole, 1};
    own_gradients = {&borrowed, 1};
  }
  for (const auto& op : s.plan.backward[static_cast<std::size_t>(index)]) {
    float* const to = s.gradient(op.to);
    const float* const from = s.gradient(op.from);
    const std::int64_t floats = s.size * op.floats;
    switch (op.kind) {
      case PassPlan::Op::Kind::add:
        on.accumulate(to, from, 1, floats, kernels::Write::add);
        break;
      case PassPlan::Op::Kind::copy:
        on.copy(to, from, static_cast<std::size_t>(floats) * sizeof(float));
        break;
      case PassPlan::Op::Kind::layer:
        // The products with the weights' gradients, and with the input's where it is wanted.
        s.timed(*model_, index, "backward", s.size * layer.flops() * (to ? 2 : 1), [&] {
          layer.backward({.on = on,
                          .batch = s.size,
                          .x = s.output(model_->input_of(index)),
                          .y = s.output(index),
                          .dy = from,
                          .dx = to,
                          .kept = s.kept[static_cast<std::size_t>(index)].mutable_data(),
                          .scratch = s.scratch.mutable_data(),
                          .weights = s.views_of(*model_, index, weights),
                          .packed = s,
                          .gradients = own_gradients,
                          .sample_keys = s.keys});
        });
        break;
    }
  }
  s.add_borrowed(*model_, index, gradients);
}

const float* Pass::borrowed_gradient(int layer) const {
  const Blob& gradient = state_->borrowed[static_cast<std::size_t>(layer)];
  LW_CHECK(gradient, layer);
  return gradient.as_floats();
}

const float* Pass::outputs() const {
  return state_->output(model_->layers() - 1);
}

int Pass::first_non_finite_layer() {
  LW_CHECK(state_->training, "an evaluation reuses the memory of its layers");
  for (int i = 0; i < model_->layers(); ++i) {
    // What a sum has overwritten holds another way's numbers too: the sum itself answers for it.
    if (state_->overwritten_by_sum(*model_, i)) continue;
    const std::int64_t count = state_->size * model_->output_of(i).count();
    if (state_->options.on->find_non_finite(state_->output(i), count) >= 0) return i;
  }
  return model_->layers();
}

Executor& Pass::executor() const {
  return *state_->options.on;
}

}  // namespace leeway
