#include "kv/store.hpp"

#include <exception>
#include <iostream>
#include <utility>

#include "kv/store_state.hpp"
#include "runtime/words.hpp"

namespace leeway::kv {

// ---- handles ----

void Handle::wait() {
  if (!state_) return;
  const StoreState::CallGuard guard(*state_->store);
  if (!state_->done) state_->store->wait(*state_);
  state_->store->call_back();
}

bool Handle::done() const {
  if (!state_) return true;
  const StoreState::CallGuard guard(*state_->store);
  if (!state_->done) state_->store->poll();
  return state_->done;
}

void Handle::then(std::function<void()> next) {
  if (!state_) return next();
  const StoreState::CallGuard guard(*state_->store);
  if (state_->done) return next();
  state_->next.push_back(std::move(next));
}

// ---- stores ----

Store::Store(std::unique_ptr<StoreState> state, std::shared_ptr<StoreSite> site)
    : site_(std::move(site)), state_(std::move(state)) {}

Store::Store(Store&&) noexcept = default;

Store::~Store() {
  if (!site_ || !state_ || closed_ || std::uncaught_exceptions() > 0) return;
  try {
    close();
  } catch (const Ended&) {
  } catch (const std::exception& error) {
    std::cerr << "leeway: " << error.what() << std::endl;
  }
}

void Store::init(const Key& key, ConstView values) {
  const StoreState::CallGuard guard(*state_);
  state_->init(key, values);
}

void Store::set_optimizer(const plan::Optimizer& optimizer) {
  const StoreState::CallGuard guard(*state_);
  state_->set_optimizer(optimizer);
}

void Store::set_updater(const std::string& name) {
  const StoreState::CallGuard guard(*state_);
  state_->set_optimizer(updater(name));
}

template <class Pairs>
void Store::end_if_pushed(const Pairs& pairs) {
  if (!state_->has_pushes()) return;
  for (const auto& [key, tensor] : pairs)
    if (state_->end_if_pushed(key)) return;
}

Handle Store::finish(Handle handle) {
  state_->call_back();
  return handle;
}

Handle Store::pull(const Key& key, View out) {
  const StoreState::CallGuard guard(*state_);
  return finish(state_->pull(key, out));
}

Handle Store::pull(std::span<const std::pair<Key, View>> outs) {
  const StoreState::CallGuard guard(*state_);
  end_if_pushed(outs);
  Handle last;
  for (const auto& [key, out] : outs) last = state_->pull(key, out);
  return finish(std::move(last));
}

Handle Store::push(const Key& key, ConstView gradient) {
  const StoreState::CallGuard guard(*state_);
  return finish(state_->push(key, gradient));
}

Handle Store::push(std::span<const std::pair<Key, ConstView>> gradients) {
  const StoreState::CallGuard guard(*state_);
  const auto held = state_->hold_views();  // gradients may be views of an iteration that ends here
  end_if_pushed(gradients);
  Handle last;
  for (const auto& [key, gradient] : gradients) last = state_->push(key, gradient);
  return finish(std::move(last));
}

View Store::gradient(const Key& key) {
  const StoreState::CallGuard guard(*state_);
  const View memory = state_->gradient(key);
  state_->call_back();
  return memory;
}

Handle Store::push(const Key& key) {
  const StoreState::CallGuard guard(*state_);
  return finish(state_->push(key));
}

Handle Store::set(const Key& key, ConstView weights) {
  const StoreState::CallGuard guard(*state_);
  return finish(state_->set(key, weights));
}

Handle Store::push_pull(const Key& key, ConstView gradient, View out) {
  const StoreState::CallGuard guard(*state_);
  state_->push(key, gradient);
  return pull(key, out);
}

Handle Store::push_pull(std::span<const std::pair<Key, ConstView>> gradients,
                        std::span<const std::pair<Key, View>> outs) {
  const StoreState::CallGuard guard(*state_);
  const auto held = state_->hold_views();
  end_if_pushed(gradients);
  for (const auto& [key, gradient] : gradients) state_->push(key, gradient);
  state_->end_iteration();
  return pull(outs);
}

ConstView Store::view(const Key& key) {
  const StoreState::CallGuard guard(*state_);
  const ConstView weights = state_->view(key);
  state_->call_back();
  return weights;
}

std::vector<float> Store::get(const Key& key) {
  const StoreState::CallGuard guard(*state_);
  auto values = state_->get(key);
  state_->call_back();
  return values;
}

void Store::end_iteration() {
  const StoreState::CallGuard guard(*state_);
  state_->end_iteration();
  state_->call_back();
}

void Store::barrier() {
  const StoreState::CallGuard guard(*state_);
  state_->barrier();
  state_->call_back();
}

std::optional<Range> Store::next_range() {
  const StoreState::CallGuard guard(*state_);
  auto range = state_->next_range();
  state_->call_back();
  return range;
}

std::vector<std::string> Store::keys() const {
  const StoreState::CallGuard guard(*state_);
  return state_->keys();
}

std::uint32_t Store::rank() const {
  return state_->rank();
}

std::uint32_t Store::workers() const {
  return state_->workers();
}

std::int64_t Store::iteration() {
  const StoreState::CallGuard guard(*state_);
  const std::int64_t number = state_->iteration();
  state_->call_back();
  return number;
}

std::int64_t Store::iterations() const {
  const StoreState::CallGuard guard(*state_);
  return state_->iterations();
}

void Store::compute(Duration time) {
  const StoreState::CallGuard guard(*state_);
  state_->compute(time);
}

Duration Store::simulated_time() const {
  const StoreState::CallGuard guard(*state_);
  return state_->simulated_time();
}

void Store::close() {
  const StoreState::CallGuard guard(*state_);
  closed_ = true;
  try {
    state_->close();
  } catch (const Lost&) {
    throw;
  } catch (const Ended&) {
  }
}

void Store::abandon() {
  closed_ = true;
  state_->abandon();
}

}  // namespace leeway::kv
