#include "kv/shared_store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/job.hpp"
#include "core/text.hpp"

namespace leeway::kv {

SharedStore::SharedStore(StoreSite& site, WorkerId worker, std::shared_ptr<UserLoop> loop)
    : site_(site), worker_(worker), loop_(std::move(loop)) {}

// ---- calls of the worker ----

void SharedStore::declare() {
  if (has_begun_) return;
  site_.declared(worker_, declarations_);
  has_begun_ = true;
}

UserAnswer SharedStore::call(UserCall call) {
  declare();
  UserAnswer answer = loop_->call(std::move(call));
  if (answer.lost) throw Lost(concat("this loop is lost: ", answer.over));
  if (!answer.over.empty()) throw Ended(answer.over);
  poll();
  return answer;
}

void SharedStore::begin() {
  if (iterating_) return;
  begun_ = call({.kind = UserCall::Kind::begin});
  if (!job_) place();
  iterating_ = true;
  range_taken_ = false;
  for (Layer& layer : layers_) layer.pushed = 0;
}

void SharedStore::place() {
  job_ = site_.job();
  if (!job_) throw Lost("this loop is lost: its job has ended");
  layers_.resize(static_cast<std::size_t>(job_->model->layers()));
  auto placed = place_keys(*job_->model, *job_->layout);
  for (const TableKey& key : declarations_.keys) {
    placed_.push_back(std::move(placed.at(key.name)));
    ++layers_[static_cast<std::size_t>(placed_.back().layer)].keys;
  }
  for (const Block& block : job_->layout->blocks())
    layers_[static_cast<std::size_t>(block.layer)].blocks.push_back(block.id);
}

void SharedStore::end_iteration() {
  begin();
  complete_pulls();
  UserCall finish{.kind = UserCall::Kind::finish, .iteration = begun_.iteration};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    if (layers_[layer].pushed > 0 && layers_[layer].pushed < layers_[layer].keys)
      add_layer(layer, finish);
  iterating_ = false;
  begun_ = {};
  ++iterations_;
  call(std::move(finish));
}

void SharedStore::compute(Duration time) {
  if (time.ns > 0) call({.kind = UserCall::Kind::compute, .time = time});
}

void SharedStore::close() {
  declare();
  pulls_.clear();
  const auto has_push = [](const Layer& layer) { return layer.pushed > 0; };
  if (iterating_ && std::ranges::any_of(layers_, has_push)) end_iteration();
  call({.kind = UserCall::Kind::close});
}

std::optional<Range> SharedStore::next_range() {
  if (!site_.has_samples())
    throw StoreError("next_range: the run has no samples to lease; set their number in Options");
  try {
    if (iterating_ && range_taken_) end_iteration();
    begin();
  } catch (const Lost&) {
    throw;
  } catch (const Ended&) {
    return std::nullopt;
  }
  range_taken_ = true;
  const LeasedIteration& leased = begun_.leased;
  const auto order = job_->orders->of(leased.epoch);
  return Range{leased.epoch.value(), {order->begin() + leased.begin, order->begin() + leased.end}};
}

// ---- keys ----

Handle SharedStore::pull(const Key& key, View out) {
  const StoredKey& stored = take(key, "pull", &out.shape);
  auto handle = std::make_shared<Handle::State>(Handle::State{.store = this});
  pulls_.push_back({stored.number, out.data, handle});
  return handle_of(std::move(handle));
}

void SharedStore::complete_pulls() {
  begin();
  for (const Pull& pull : std::exchange(pulls_, {})) {
    for (const TablePiece& piece : placed_[pull.key].pieces)
      std::copy_n(begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, piece.count,
                  pull.out + piece.first);
    complete(*pull.handle);
  }
}

ConstView SharedStore::view(const Key& key) {
  const StoredKey& stored = take(key, "view", nullptr);
  begin();
  const auto& pieces = placed_[stored.number].pieces;
  if (pieces.size() > 1)
    throw StoreError(concat("view of key \"", key.name(), "\": it is in ", pieces.size(),
                            " pieces; pull it into a buffer"));
  const TablePiece& piece = pieces.front();
  return {begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, stored.shape};
}

std::vector<float> SharedStore::get(const Key& key) {
  const Shape shape = take(key, "get", nullptr).shape;
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  pull(key, {values.data(), shape});
  complete_pulls();
  return values;
}

Handle SharedStore::push(const Key& key, ConstView gradient) {
  // The gradient may be a view of these weights, which the end of the iteration releases.
  const auto weights = iterating_ && was_pushed(key) ? begun_.weights.blobs : std::vector<Blob>();
  StoredKey& stored = take(key, "push", &gradient.shape);
  begin();
  if (site_.has_samples() && !range_taken_)
    throw StoreError(concat("push of key \"", key.name(),
                            "\": the run leases samples, and this iteration has no range; call "
                            "next_range() before its pushes"));
  complete_pulls();  // before the key counts as pushed, and so that the iteration has begun
  stored.pushed_in = iterations_;
  const PlacedKey& placed = placed_[stored.number];
  for (const TablePiece& piece : placed.pieces)
    std::copy_n(gradient.data + piece.first, piece.count,
                gradient_of(piece.block).mutable_floats() + piece.offset);
  auto handle = std::make_shared<Handle::State>(
      Handle::State{.store = this, .is_push = true, .iteration = begun_.iteration});
  pushes_.push_back(handle);
  Layer& layer = layers_[static_cast<std::size_t>(placed.layer)];
  if (++layer.pushed == layer.keys) {
    UserCall push{.kind = UserCall::Kind::push, .iteration = begun_.iteration};
    add_layer(static_cast<std::size_t>(placed.layer), push);
    call(std::move(push));
  }
  return handle_of(std::move(handle));
}

Blob& SharedStore::gradient_of(BlockId id) {
  Blob& gradient = gradients_[id];
  if (gradient) return gradient;
  const Block& block = job_->layout->block(id);
  gradient = Blob::floats(block.floats);
  // Its other keys may have no gradient, and the padding between slices is zero.
  if (block.slices.size() > 1) std::fill_n(gradient.mutable_floats(), block.floats, 0.0f);
  return gradient;
}

void SharedStore::add_layer(std::size_t layer, UserCall& call) {
  call.layers.push_back(static_cast<int>(layer));
  for (const BlockId id : layers_[layer].blocks) {
    if (auto node = gradients_.extract(id); !node.empty()) {
      call.gradients.insert(std::move(node));
      continue;
    }
    const std::int64_t floats = job_->layout->block(id).floats;
    Blob zeros = Blob::floats(floats);
    std::fill_n(zeros.mutable_floats(), floats, 0.0f);
    call.gradients.emplace(id, std::move(zeros));
  }
}

// ---- handles ----

void SharedStore::poll() {
  const Clock acknowledged = loop_->acknowledged();
  for (; !pushes_.empty() && pushes_.front()->iteration.value() < acknowledged.value();
       pushes_.pop_front())
    complete(*pushes_.front());
}

void SharedStore::wait(const Handle::State& handle) {
  if (!handle.is_push) return complete_pulls();
  if (iterating_ && handle.iteration == begun_.iteration) end_iteration();
  call({.kind = UserCall::Kind::flush});
  // After an eviction the worker's clock may be behind pushes that were dropped.
  const auto of_this = [&](const auto& push) {
    return iterating_ && push->iteration == begun_.iteration;
  };
  for (; !pushes_.empty() && !of_this(pushes_.front()); pushes_.pop_front())
    complete(*pushes_.front());
}

}  // namespace leeway::kv
