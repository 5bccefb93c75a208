#include "kv/store_state.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.hpp"

namespace leeway::kv {

// ---- before the first iteration ----

void StoreState::init(const Key& key, ConstView values) {
  if (has_begun_)
    throw StoreError(
        concat("init of key \"", key.name(),
               "\": the first iteration has begun; initialise all keys before the first "
               "push, pull or range"));
  if (values.shape.count() <= 0)
    throw StoreError(
        concat("init of key \"", key.name(), "\": the shape ", values.shape, " is empty"));
  if (!keys_.emplace(key.name(), StoredKey{keys_.size(), values.shape}).second)
    throw StoreError(concat("init of key \"", key.name(), "\": it is initialised already"));
  Blob copy = Blob::floats(values.shape.count());
  std::copy_n(values.data, values.shape.count(), copy.mutable_floats());
  declarations_.keys.push_back({key.name(), values.shape});
  declarations_.values.push_back(std::move(copy));
}

void StoreState::set_optimizer(const plan::Optimizer& optimizer) {
  if (has_begun_)
    throw StoreError(
        "set_optimizer: the first iteration has begun; set it before the first push, pull or "
        "range");
  check(optimizer);
  declarations_.optimizer = optimizer;
}

// ---- keys ----

std::vector<std::string> StoreState::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_) names.push_back(name);
  return names;
}

StoreState::StoredKey& StoreState::take(const Key& key, const char* what, const Shape* shape) {
  const auto found = keys_.find(key.name());
  if (found == keys_.end())
    throw StoreError(concat(what, " of key \"", key.name(),
                            "\": it was not initialised; call init() for it before the first push, "
                            "pull or range"));
  StoredKey& stored = found->second;
  if (shape && *shape != stored.shape)
    throw StoreError(concat(what, " of key \"", key.name(), "\": its shape is ", stored.shape,
                            ", not ", *shape));
  if (stored.pushed_in == iterations_) end_iteration();
  return stored;
}

bool StoreState::was_pushed(const Key& key) const {
  const auto found = keys_.find(key.name());
  return found != keys_.end() && found->second.pushed_in == iterations_;
}

// ---- handles ----

void StoreState::complete(Handle::State& handle) {
  handle.done = true;
  std::ranges::move(std::exchange(handle.next, {}), std::back_inserter(due_));
}

void StoreState::call_back() {
  while (!due_.empty()) {
    const auto next = std::move(due_.front());
    due_.pop_front();
    next();
  }
}

}  // namespace leeway::kv
