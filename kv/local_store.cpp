#include "kv/local_store.hpp"

#include <algorithm>
#include <utility>

#include "plan/epochs.hpp"
#include "policies/optimizer/updater.hpp"
#include "runtime/words.hpp"

namespace leeway::kv {

LocalStore::LocalStore(const StoreOptions& options)
    : options_(options),
      executor_(make_cpu_executor()),
      orders_(std::max<std::int64_t>(options.samples, 1), options.seed) {}

void LocalStore::check(const plan::Optimizer& optimizer) const {
  if (optimizer.clip_norm > 0 || !optimizer.groups.empty() || optimizer.no_decay_on_biases ||
      optimizer.eight_bit_state)
    throw StoreError(
        "set_optimizer: a local store updates each key by itself, without a norm over all keys, "
        "without groups, and with state of 32 bits; use a store of a run for them");
  if (const auto* named = std::get_if<plan::Updater>(&optimizer.kind)) {
    if (optimizer.clip_value > 0)
      throw StoreError(
          "set_optimizer: an updater gets the gradients as they are; set no clip_value");
    if (const auto found = find_updater(named->name); !found)
      throw StoreError("set_updater: " + found.error().text);
  }
}

void LocalStore::begin() {
  if (has_begun_) return;
  if (declarations_.keys.empty())
    throw StoreError("the store has no keys; call init() before push() and pull()");
  has_begun_ = true;
  if (!declarations_.optimizer) declarations_.optimizer = sum_gradients();
  optimizer_ = make_optimizer(*declarations_.optimizer);
  for (Blob& values : declarations_.values) {
    Tensor& tensor = tensors_.emplace_back(Tensor{.weights = std::move(values)});
    const auto count = static_cast<std::int64_t>(tensor.weights.size() / sizeof(float));
    for (int slot = 0; slot < optimizer_->slots(); ++slot) {
      tensor.slots.push_back(Blob::floats(count));
      std::fill_n(tensor.slots.back().mutable_floats(), count, optimizer_->initial_state(slot));
    }
  }
}

// ---- keys ----

Handle LocalStore::pull(const Key& key, View out) {
  begin();
  const std::size_t number = take(key, "pull", &out.shape);
  write(out.data, out.type, 0, tensors_[number].weights.as_floats(), out.shape.count());
  return {};
}

ConstView LocalStore::view(const Key& key) {
  begin();
  const std::size_t number = take(key, "view", nullptr);
  return {tensors_[number].weights.as_floats(), keys_[number].shape};
}

std::vector<float> LocalStore::get(const Key& key) {
  const ConstView weights = view(key);
  return {weights.floats(), weights.floats() + weights.shape.count()};
}

Handle LocalStore::push(const Key& key, ConstView gradient) {
  begin();
  const std::size_t number = take(key, "push", &gradient.shape);
  if (gradient.type == ElementType::f32) {
    update(number, gradient.floats());
  } else {
    float* const floats = memory_of(number).mutable_floats();
    read(gradient.data, gradient.type, 0, floats, gradient.shape.count());
    update(number, floats);
  }
  return {};
}

View LocalStore::gradient(const Key& key) {
  begin();
  const std::size_t number = take(key, "gradient", nullptr);
  keys_[number].buffer_in = iterations_;
  return {memory_of(number).mutable_floats(), keys_[number].shape};
}

Blob& LocalStore::memory_of(std::size_t number) {
  Blob& memory = tensors_[number].gradient;
  if (!memory) memory = Blob::floats(keys_[number].shape.count());
  return memory;
}

Handle LocalStore::push(const Key& key) {
  const std::size_t number = find(key, "push", nullptr);
  require_buffer(key, number);
  update(number, tensors_[number].gradient.as_floats());
  return {};
}

Handle LocalStore::set(const Key& key, ConstView weights) {
  begin();
  const std::size_t number = take(key, "set", &weights.shape);
  mark_pushed(number);
  read(weights.data, weights.type, 0, tensors_[number].weights.mutable_floats(),
       weights.shape.count());
  return {};
}

void LocalStore::update(std::size_t number, const float* gradient) {
  mark_pushed(number);
  Tensor& tensor = tensors_[number];
  const plan::Optimizer& settings = *declarations_.optimizer;
  kernels::UpdateBuffers buffers;
  const Shape& shape = keys_[number].shape;
  buffers.count = shape.count();
  buffers.g = gradient;
  buffers.w = buffers.w_out = tensor.weights.mutable_floats();
  for (std::size_t slot = 0; slot < tensor.slots.size(); ++slot)
    buffers.state[slot] = buffers.state_out[slot] = tensor.slots[slot].mutable_floats();
  if (settings.clip_value > 0) buffers.clipping.limit = static_cast<float>(settings.clip_value);
  tensor.progress += weight_;
  optimizer_->update(*executor_, buffers,
                     {.weight = weight_,
                      .learning_rate = settings.learning_rate,
                      .progress = tensor.progress,
                      .parameter = declarations_.keys[number].name,
                      .floats = buffers.count,
                      .columns = shape.rank() >= 2 ? shape.row_count() : 0});
}

// ---- iterations ----

std::int64_t LocalStore::iteration() {
  begin();
  return iterations_;
}

void LocalStore::end_iteration() {
  begin();
  range_taken_ = false;
  weight_ = 1;
  ++iterations_;
}

void LocalStore::barrier() {
  begin();
  if (range_taken_ || has_pushes()) end_iteration();
}

void LocalStore::wait(const Handle::State& handle) {
  if (!handle.done) end_iteration();
}

std::optional<Range> LocalStore::next_range() {
  begin();
  if (options_.samples < 1)
    throw StoreError(
        "next_range: the store has no samples to lease; set their number in StoreOptions");
  if (range_taken_) end_iteration();
  const std::int64_t last = samples_of_epochs(options_.epochs, options_.samples);
  if (leased_ >= last) return std::nullopt;
  const std::int64_t epoch = leased_ / options_.samples, begin = leased_ % options_.samples;
  const std::int64_t end =
      std::min<std::int64_t>({begin + options_.batch, options_.samples, begin + last - leased_});
  leased_ += end - begin;
  range_taken_ = true;
  weight_ = static_cast<double>(end - begin) / options_.batch;
  const auto order = orders_.of(Epoch(epoch));
  return Range{epoch, {order->begin() + begin, order->begin() + end}};
}

}  // namespace leeway::kv
