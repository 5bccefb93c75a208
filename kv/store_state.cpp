#include "kv/store_state.hpp"

#include <algorithm>
#include <utility>

#include "actors/job.hpp"
#include "core/text.hpp"

namespace leeway::kv {
StoreState::StoreState(StoreSite& site, WorkerId worker, std::shared_ptr<UserLoop> loop)
    : site_(site), worker_(worker), loop_(std::move(loop)) {}

// ---- before the first iteration ----

void StoreState::init(const Key& key, ConstView values) {
  if (declared_)
    throw StoreError(
        concat("init of key \"", key.name(),
               "\": the first iteration has begun; initialise all keys before the first "
               "push, pull or range"));
  if (values.shape.count() <= 0)
    throw StoreError(
        concat("init of key \"", key.name(), "\": the shape ", values.shape, " is empty"));
  if (!keys_.emplace(key.name(), StoredKey{{.shape = values.shape}}).second)
    throw StoreError(concat("init of key \"", key.name(), "\": it is initialised already"));
  Blob copy = Blob::floats(values.shape.count());
  std::copy_n(values.data, values.shape.count(), copy.mutable_floats());
  declarations_.keys.push_back({key.name(), values.shape});
  declarations_.values.push_back(std::move(copy));
}

void StoreState::set_optimizer(const plan::Optimizer& optimizer) {
  if (declared_)
    throw StoreError(
        "set_optimizer: the first iteration has begun; set it before the first push, pull or "
        "range");
  declarations_.optimizer = optimizer;
}

void StoreState::declare() {
  if (!std::exchange(declared_, true)) site_.declared(worker_, declarations_);
}

// ---- calls of the worker ----

UserAnswer StoreState::call(UserCall call) {
  declare();
  UserAnswer answer = loop_->call(std::move(call));
  if (!answer.over.empty()) throw Ended(answer.over);
  return answer;
}

void StoreState::begin() {
  if (iterating_) return;
  begun_ = call({.kind = UserCall::Kind::begin});
  if (!job_) place();
  iterating_ = true;
  range_taken_ = false;
  gradients_.assign(job_->layout->blocks().size(), {});
  pushed_of_layer_.assign(keys_of_layer_.size(), 0);
}

void StoreState::place() {
  job_ = site_.job();
  keys_of_layer_.resize(static_cast<std::size_t>(job_->model->layers()));
  for (auto& [name, placed] : place_keys(*job_->model, *job_->layout)) {
    ++keys_of_layer_[static_cast<std::size_t>(placed.layer)];
    static_cast<PlacedKey&>(keys_.at(name)) = std::move(placed);
  }
}

void StoreState::end_iteration() {
  begin();
  complete_pulls();
  UserCall finish{.kind = UserCall::Kind::finish, .iteration = begun_.iteration};
  for (std::size_t layer = 0; layer < pushed_of_layer_.size(); ++layer)
    if (pushed_of_layer_[layer] > 0 && pushed_of_layer_[layer] < keys_of_layer_[layer])
      finish.layers.push_back(static_cast<int>(layer));
  finish.gradients = std::move(gradients_);
  iterating_ = false;
  begun_ = {};
  ++iterations_;
  call(std::move(finish));
}

void StoreState::compute(Duration time) {
  if (time.ns > 0) call({.kind = UserCall::Kind::compute, .time = time});
}

void StoreState::close() {
  declare();
  try {
    if (iterating_ && std::ranges::any_of(pushed_of_layer_, [](auto keys) { return keys > 0; }))
      end_iteration();
  } catch (const Ended&) {
    return;
  }
  loop_->call({.kind = UserCall::Kind::close});
}

std::optional<Range> StoreState::next_range() {
  if (iterating_ && range_taken_) end_iteration();
  try {
    begin();
  } catch (const Ended&) {
    return std::nullopt;
  }
  range_taken_ = true;
  const LeasedIteration& leased = begun_.leased;
  const auto order = job_->orders->of(leased.epoch);
  return Range{leased.epoch.value(), {order->begin() + leased.begin, order->begin() + leased.end}};
}

// ---- keys ----

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

Handle StoreState::pull(const Key& key, View out) {
  const StoredKey& stored = take(key, "pull", &out.shape);
  auto handle = std::make_shared<Handle::State>(Handle::State{.store = this});
  pulls_.push_back({&stored, out.data, handle});
  return Handle(std::move(handle));
}

void StoreState::complete_pulls() {
  begin();
  for (const Pull& pull : std::exchange(pulls_, {})) {
    for (const TablePiece& piece : pull.key->pieces)
      std::copy_n(begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, piece.count,
                  pull.out + piece.first);
    complete(*pull.handle);
  }
}

ConstView StoreState::view(const Key& key) {
  const StoredKey& stored = take(key, "view", nullptr);
  begin();
  if (stored.pieces.size() > 1)
    throw StoreError(concat("view of key \"", key.name(), "\": it is in ", stored.pieces.size(),
                            " pieces; pull it into a buffer"));
  const TablePiece& piece = stored.pieces.front();
  return {begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, stored.shape};
}

std::vector<float> StoreState::get(const Key& key) {
  const Shape shape = take(key, "get", nullptr).shape;
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  pull(key, {values.data(), shape});
  complete_pulls();
  return values;
}

Handle StoreState::push(const Key& key, ConstView gradient) {
  StoredKey& stored = take(key, "push", &gradient.shape);
  complete_pulls();  // before the key counts as pushed, and so that the iteration has begun
  stored.pushed_in = iterations_;
  for (const TablePiece& piece : stored.pieces)
    std::copy_n(gradient.data + piece.first, piece.count,
                gradient_of(piece.block).mutable_floats() + piece.offset);
  const auto layer = static_cast<std::size_t>(stored.layer);
  if (++pushed_of_layer_[layer] == keys_of_layer_[layer]) push_layer(stored.layer);
  auto handle = std::make_shared<Handle::State>(
      Handle::State{.store = this, .is_push = true, .iteration = iterations_});
  pushes_.push_back(handle);
  return Handle(std::move(handle));
}

Blob& StoreState::gradient_of(BlockId id) {
  Blob& gradient = gradients_[id.value()];
  if (gradient) return gradient;
  const Block& block = job_->layout->block(id);
  gradient = Blob::floats(block.floats);
  // Its other keys may have no gradient, and the padding between slices is zero.
  if (block.slices.size() > 1) std::fill_n(gradient.mutable_floats(), block.floats, 0.0f);
  return gradient;
}

void StoreState::push_layer(int layer) {
  UserCall push{.kind = UserCall::Kind::push, .iteration = begun_.iteration, .layers = {layer}};
  push.gradients.resize(gradients_.size());
  for (const Block& block : job_->layout->blocks())
    if (block.layer == layer)
      push.gradients[block.id.value()] = std::move(gradients_[block.id.value()]);
  call(std::move(push));
}

// ---- handles ----

void StoreState::complete(Handle::State& handle) {
  handle.done = true;
  for (const auto& next : std::exchange(handle.next, {})) next();
}

void StoreState::wait(const Handle::State& handle) {
  if (!handle.is_push) return complete_pulls();
  if (iterating_ && handle.iteration == iterations_) end_iteration();
  call({.kind = UserCall::Kind::flush});
  const auto waiting = std::exchange(pushes_, {});
  for (const auto& push : waiting) {
    if (push->iteration == iterations_)
      pushes_.push_back(push);
    else
      complete(*push);
  }
}

std::vector<std::string> StoreState::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_) names.push_back(name);
  return names;
}

}  // namespace leeway::kv
