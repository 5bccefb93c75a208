#include "kv/store_state.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway::kv {
namespace {

/// The integer whose text is `name`.
std::optional<std::int64_t> integer_of(const std::string& name) {
  const auto number = parse_number<std::int64_t>(name);
  return number && std::to_string(*number) == name ? number : std::nullopt;
}

}  // namespace

StoreState::CallGuard::CallGuard(StoreState& state) : state_(state) {
  const std::thread::id self = std::this_thread::get_id();
  if (state_.caller_.load(std::memory_order_relaxed) == self) return;
  std::thread::id no_thread;
  if (!state_.caller_.compare_exchange_strong(no_thread, self, std::memory_order_acquire))
    throw Busy(
        "two threads call this store at once; start a worker for each thread, or let one thread "
        "make "
        "all calls");
  is_outer_ = true;
}

StoreState::CallGuard::~CallGuard() {
  if (is_outer_) state_.caller_.store({}, std::memory_order_release);
}

// ---- before the first iteration ----

void StoreState::init(const Key& key, ConstView values) {
  if (has_begun_)
    throw StoreError(
        concat("init of key \"", key.name(),
               "\": the first iteration has begun; initialise all keys before the first "
               "push, pull or range"));
  const auto extents = values.shape.extents();
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 1; }))
    throw StoreError(
        concat("init of key \"", key.name(), "\": the shape ", values.shape, " is empty"));
  const std::string name = key.name();
  if (!by_name_.emplace(name, keys_.size()).second)
    throw StoreError(concat("init of key \"", name, "\": it is initialised already"));
  if (const auto number = integer_of(name)) by_number_.emplace(*number, keys_.size());
  keys_.push_back({values.shape});
  Blob copy = Blob::floats(values.shape.count());
  read(values.data, values.type, 0, copy.mutable_floats(), values.shape.count());
  declarations_.keys.push_back({name, values.shape});
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
  for (const TableKey& key : declarations_.keys) names.push_back(key.name);
  return names;
}

std::size_t StoreState::find(const Key& key, const char* what, const Shape* shape) const {
  std::size_t number = keys_.size();
  if (const auto integer = key.number()) {
    if (const auto found = by_number_.find(*integer); found != by_number_.end())
      number = found->second;
  } else if (const auto found = by_name_.find(key.name()); found != by_name_.end()) {
    number = found->second;
  }
  if (number == keys_.size())
    throw StoreError(concat(what, " of key \"", key.name(),
                            "\": it was not initialised; call init() for it before the first push, "
                            "pull or range"));
  if (shape && *shape != keys_[number].shape)
    throw StoreError(concat(what, " of key \"", key.name(), "\": its shape is ",
                            keys_[number].shape, ", not ", *shape));
  return number;
}

std::size_t StoreState::take(const Key& key, const char* what, const Shape* shape) {
  const std::size_t number = find(key, what, shape);
  if (was_pushed(number)) end_iteration();
  return number;
}

bool StoreState::end_if_pushed(const Key& key) {
  if (!was_pushed(find(key, "a call with several keys", nullptr))) return false;
  end_iteration();
  return true;
}

void StoreState::require_buffer(const Key& key, std::size_t number) const {
  if (keys_[number].buffer_in != iterations_ || was_pushed(number))
    throw StoreError(concat("push of key \"", key.name(),
                            "\": write its gradient to the memory that gradient() returns in this "
                            "iteration, or give a gradient"));
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
