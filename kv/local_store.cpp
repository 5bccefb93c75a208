#include "kv/local_store.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "runtime/words.hpp"

namespace leeway::kv {

LocalStore::LocalStore(const StoreOptions& options)
    : options_(options),
      executor_(make_cpu_executor()),
      orders_(std::max<std::int64_t>(options.samples, 1), options.seed) {}

void LocalStore::check(const plan::Optimizer& optimizer) const {
  if (optimizer.clip_norm > 0 || !optimizer.groups.empty() || optimizer.no_decay_on_biases)
    throw StoreError(
        "set_optimizer: a local store updates each key by itself, without a norm over all keys and "
        "without groups; use a store of a run for them");
}

void LocalStore::begin() {
  if (has_begun_) return;
  if (declarations_.keys.empty())
    throw StoreError("the store has no keys; call init() before push() and pull()");
  has_begun_ = true;
  if (!declarations_.optimizer) declarations_.optimizer = sum_gradients();
  optimizer_ = make_optimizer(*declarations_.optimizer);
  for (Blob& values : declarations_.values) {
    Tensor& tensor = tensors_.emplace_back(Tensor{std::move(values), {}, 0});
    const auto count = static_cast<std::int64_t>(tensor.weights.size() / sizeof(float));
    for (int slot = 0; slot < optimizer_->slots(); ++slot) {
      tensor.slots.push_back(Blob::floats(count));
      std::fill_n(tensor.slots.back().mutable_floats(), count, optimizer_->initial_state(slot));
    }
  }
}

// ---- keys ----

Handle LocalStore::done() {
  auto state = std::make_shared<Handle::State>(Handle::State{.store = this});
  complete(*state);
  return handle_of(std::move(state));
}

Handle LocalStore::pull(const Key& key, View out) {
  begin();
  const StoredKey& stored = take(key, "pull", &out.shape);
  std::copy_n(tensors_[stored.number].weights.as_floats(), stored.shape.count(), out.data);
  return done();
}

ConstView LocalStore::view(const Key& key) {
  begin();
  const StoredKey& stored = take(key, "view", nullptr);
  return {tensors_[stored.number].weights.as_floats(), stored.shape};
}

std::vector<float> LocalStore::get(const Key& key) {
  const ConstView weights = view(key);
  return {weights.data, weights.data + weights.shape.count()};
}

Handle LocalStore::push(const Key& key, ConstView gradient) {
  begin();
  StoredKey& stored = take(key, "push", &gradient.shape);
  stored.pushed_in = iterations_;
  update(tensors_[stored.number], gradient.data);
  return done();
}

void LocalStore::update(Tensor& tensor, const float* gradient) {
  const plan::Optimizer& settings = *declarations_.optimizer;
  kernels::UpdateBuffers buffers;
  buffers.count = static_cast<std::int64_t>(tensor.weights.size() / sizeof(float));
  buffers.g = gradient;
  buffers.w = buffers.w_out = tensor.weights.mutable_floats();
  for (std::size_t slot = 0; slot < tensor.slots.size(); ++slot)
    buffers.state[slot] = buffers.state_out[slot] = tensor.slots[slot].mutable_floats();
  if (settings.clip_value > 0) buffers.limit = static_cast<float>(settings.clip_value);
  tensor.progress += weight_;
  optimizer_->update(*executor_, buffers, {weight_, settings.learning_rate, tensor.progress, 1});
}

// ---- iterations ----

void LocalStore::end_iteration() {
  begin();
  range_taken_ = false;
  weight_ = 1;
  ++iterations_;
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
  const auto last = std::llround(options_.epochs * static_cast<double>(options_.samples));
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
