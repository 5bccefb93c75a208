#include "kv/store.hpp"

#include <utility>

#include "kv/store_state.hpp"

namespace leeway::kv {

void Handle::wait() {
  if (!state_->done) state_->store->wait(*state_);
}

bool Handle::done() const {
  return state_->done;
}

void Handle::then(std::function<void()> next) {
  if (state_->done) return next();
  state_->next.push_back(std::move(next));
}

Store::Store(std::unique_ptr<StoreState> state) : state_(std::move(state)) {}

Store::~Store() {
  state_->close();
}

void Store::init(const Key& key, ConstView values) {
  state_->init(key, values);
}

void Store::set_optimizer(const plan::Optimizer& optimizer) {
  state_->set_optimizer(optimizer);
}

Handle Store::pull(const Key& key, View out) {
  return state_->pull(key, out);
}

Handle Store::push(const Key& key, ConstView gradient) {
  return state_->push(key, gradient);
}

Handle Store::push_pull(const Key& key, ConstView gradient, View out) {
  push(key, gradient);
  return pull(key, out);
}

Handle Store::push_pull(std::span<const std::pair<Key, ConstView>> gradients,
                        std::span<const std::pair<Key, View>> outs) {
  for (const auto& [key, gradient] : gradients) push(key, gradient);
  end_iteration();
  if (outs.empty()) throw StoreError("push_pull: give at least one key to pull");
  for (const auto& [key, out] : outs.first(outs.size() - 1)) pull(key, out);
  return pull(outs.back().first, outs.back().second);
}

ConstView Store::view(const Key& key) {
  return state_->view(key);
}

std::vector<float> Store::get(const Key& key) {
  return state_->get(key);
}

void Store::end_iteration() {
  state_->end_iteration();
}

std::optional<Range> Store::next_range() {
  return state_->next_range();
}

std::vector<std::string> Store::keys() const {
  return state_->keys();
}

std::uint32_t Store::rank() const {
  return state_->rank();
}

std::uint32_t Store::workers() const {
  return state_->workers();
}

std::int64_t Store::iterations() const {
  return state_->iterations();
}

void Store::compute(Duration time) {
  state_->compute(time);
}

}  // namespace leeway::kv
