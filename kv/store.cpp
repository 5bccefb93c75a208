#include "kv/store.hpp"

#include <exception>
#include <iostream>
#include <utility>

#include "kv/store_state.hpp"

namespace leeway::kv {

// ---- handles ----

void Handle::wait() {
  if (!state_->done) state_->store->wait(*state_);
  state_->store->call_back();
}

bool Handle::done() const {
  if (!state_->done) state_->store->poll();
  return state_->done;
}

void Handle::then(std::function<void()> next) {
  if (state_->done) return next();
  state_->next.push_back(std::move(next));
}

// ---- stores ----

Store::Store(std::unique_ptr<StoreState> state, std::shared_ptr<StoreSite> site)
    : site_(std::move(site)), state_(std::move(state)) {}

Store::Store(Store&&) noexcept = default;

Store::~Store() {
  if (!site_ || !state_ || std::uncaught_exceptions() > 0) return;
  try {
    state_->close();
  } catch (const Ended&) {
  } catch (const std::exception& error) {
    std::cerr << "leeway: " << error.what() << std::endl;
  }
}

void Store::init(const Key& key, ConstView values) {
  state_->init(key, values);
}

void Store::set_optimizer(const plan::Optimizer& optimizer) {
  state_->set_optimizer(optimizer);
}

Handle Store::pull(const Key& key, View out) {
  Handle handle = state_->pull(key, out);
  state_->call_back();
  return handle;
}

Handle Store::push(const Key& key, ConstView gradient) {
  Handle handle = state_->push(key, gradient);
  state_->call_back();
  return handle;
}

Handle Store::push_pull(const Key& key, ConstView gradient, View out) {
  state_->push(key, gradient);
  return pull(key, out);
}

Handle Store::push_pull(std::span<const std::pair<Key, ConstView>> gradients,
                        std::span<const std::pair<Key, View>> outs) {
  if (outs.empty()) throw StoreError("push_pull: give at least one key to pull");
  for (const auto& [key, gradient] : gradients) state_->push(key, gradient);
  state_->end_iteration();
  for (const auto& [key, out] : outs.first(outs.size() - 1)) state_->pull(key, out);
  return pull(outs.back().first, outs.back().second);
}

ConstView Store::view(const Key& key) {
  const ConstView weights = state_->view(key);
  state_->call_back();
  return weights;
}

std::vector<float> Store::get(const Key& key) {
  auto values = state_->get(key);
  state_->call_back();
  return values;
}

void Store::end_iteration() {
  state_->end_iteration();
  state_->call_back();
}

std::optional<Range> Store::next_range() {
  auto range = state_->next_range();
  state_->call_back();
  return range;
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
