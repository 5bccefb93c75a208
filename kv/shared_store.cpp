#include "kv/shared_store.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
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
  return check(loop_->call(std::move(call)));
}

void SharedStore::post(UserCall call) {
  declare();
  check(loop_->post(std::move(call)));
}

UserAnswer SharedStore::check(UserAnswer answer) {
  if (answer.lost) throw Lost(concat("this loop is lost: ", answer.over));
  if (!answer.over.empty()) throw Ended(answer.over);
  if (loop_->is_simulated()) now_ = answer.now;
  poll();
  return answer;
}

void SharedStore::begin() {
  if (iterating_) return;
  begun_ = call({.kind = UserCall::Kind::begin});
  if (!job_) place();
  iterating_ = true;
  range_taken_ = time_taken_ = false;
  hashes_.clear();
  handed_over_.clear();
  for (Layer& layer : layers_) layer.pushed = 0;
}

void SharedStore::take_compute_time() {
  if (!std::exchange(time_taken_, true)) compute(site_.compute_time(begun_.leased.samples()));
}

void SharedStore::place() {
  job_ = site_.job();
  if (!job_) throw Lost("this loop is lost: its job has ended");
  layers_.resize(static_cast<std::size_t>(job_->model->layers()));
  auto placed = place_keys(*job_->model, *job_->layout);
  for (const TableKey& key : declarations_.keys) {
    layers_[static_cast<std::size_t>(placed.at(key.name).layer)].keys.push_back(placed_.size());
    placed_.push_back(std::move(placed.at(key.name)));
  }
  for (const Block& block : job_->layout->blocks())
    layers_[static_cast<std::size_t>(block.layer)].blocks.push_back(block.id);
  gradients_.resize(job_->layout->blocks().size());
}

void SharedStore::end_iteration() {
  complete_pulls();  // also begins the iteration
  check_gradients();
  // Samples that the loop has not seen are not trained.
  if (site_.has_samples() && !range_taken_) return give_back();
  take_compute_time();
  UserCall finish{.kind = UserCall::Kind::finish, .iteration = begun_.iteration};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    if (layers_[layer].pushed > 0 && layers_[layer].pushed < layers_[layer].keys.size())
      add_layer(layer, finish);
  iterating_ = false;
  begun_ = {};
  ++iterations_;
  post(std::move(finish));
}

void SharedStore::give_back() {
  UserCall back{.kind = UserCall::Kind::give_back, .iteration = begun_.iteration};
  iterating_ = false;
  begun_ = {};
  ++iterations_;
  post(std::move(back));
}

void SharedStore::barrier() {
  try {
    if (!pulls_.empty()) complete_pulls();
    if (iterating_ && (has_pushes() || range_taken_)) end_iteration();
    if (iterating_) give_back();
    call({.kind = UserCall::Kind::barrier});
  } catch (const Lost&) {
    throw;
  } catch (const Ended&) {  // no worker is awaited any more
  }
}

std::int64_t SharedStore::iteration() {
  begin();
  return begun_.iteration.value();
}

void SharedStore::compute(Duration time) {
  if (time.ns > 0) call({.kind = UserCall::Kind::compute, .time = time});
}

void SharedStore::close() {
  declare();
  pulls_.clear();
  pulling_.reset();
  if (iterating_ && has_pushes()) end_iteration();
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
  return Range{leased.epoch.value(), job_->orders->samples(leased.epoch, leased.begin, leased.end)};
}

// ---- weights ----

Handle SharedStore::pull(const Key& key, View out) {
  const std::size_t number = take(key, "pull", &out.shape);
  if (iterating_) {
    copy(number, out.data, out.type);
    return {};
  }
  if (!pulling_) pulling_ = std::make_shared<Handle::State>(Handle::State{.store = this});
  pulls_.push_back({number, out.data, out.type});
  return handle_of(pulling_);
}

void SharedStore::complete_pulls() {
  begin();
  for (const Pull& pull : pulls_) copy(pull.key, pull.out, pull.type);
  pulls_.clear();
  if (const auto pulling = std::exchange(pulling_, nullptr)) complete(*pulling);
}

void SharedStore::copy(std::size_t number, void* out, ElementType type) const {
  for (const TablePiece& piece : placed_[number].pieces)
    write(out, type, piece.first,
          begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, piece.count);
}

ConstView SharedStore::view(const Key& key) {
  const std::size_t number = take(key, "view", nullptr);
  begin();
  const Shape& shape = keys_[number].shape;
  const auto& pieces = placed_[number].pieces;
  if (pieces.size() == 1) {
    const TablePiece& piece = pieces.front();
    return {begun_.weights.blobs[piece.block.value()].as_floats() + piece.offset, shape};
  }
  auto& joined = joined_[number].weights;
  joined.resize(static_cast<std::size_t>(shape.count()));
  copy(number, joined.data(), ElementType::f32);
  return {joined.data(), shape};
}

std::vector<float> SharedStore::get(const Key& key) {
  const std::size_t number = take(key, "get", nullptr);
  complete_pulls();
  std::vector<float> values(static_cast<std::size_t>(keys_[number].shape.count()));
  copy(number, values.data(), ElementType::f32);
  return values;
}

// ---- gradients ----

Handle SharedStore::push(const Key& key, ConstView gradient) {
  return push_copy(key, "push", gradient, /*assigns=*/false);
}

Handle SharedStore::set(const Key& key, ConstView weights) {
  return push_copy(key, "set", weights, /*assigns=*/true);
}

View SharedStore::gradient(const Key& key) {
  const std::size_t number = take(key, "gradient", nullptr);
  begin();
  keys_[number].buffer_in = iterations_;
  const Shape& shape = keys_[number].shape;
  const auto& pieces = placed_[number].pieces;
  if (pieces.size() == 1)
    return {gradient_of(pieces.front().block).mutable_floats() + pieces.front().offset, shape};
  auto& joined = joined_[number].gradient;
  joined.resize(static_cast<std::size_t>(shape.count()));
  return {joined.data(), shape};
}

Handle SharedStore::push(const Key& key) {
  const std::size_t number = find(key, "push", nullptr);
  require_buffer(key, number);
  begin_push(key, "push");
  if (placed_[number].pieces.size() > 1)
    split(number, joined_[number].gradient.data(), ElementType::f32);
  return pushed(number);
}

void SharedStore::split(std::size_t number, const void* values, ElementType type) {
  for (const TablePiece& piece : placed_[number].pieces)
    read(values, type, piece.first, gradient_of(piece.block).mutable_floats() + piece.offset,
         piece.count);
}

void SharedStore::begin_push(const Key& key, const char* what) {
  complete_pulls();  // also begins the iteration
  if (site_.has_samples() && !range_taken_)
    throw StoreError(concat(what, " of key \"", key.name(),
                            "\": the run leases samples, and this iteration has no range; call "
                            "next_range() before its pushes"));
  take_compute_time();
}

Handle SharedStore::push_copy(const Key& key, const char* what, ConstView values, bool assigns) {
  const std::size_t number = find(key, what, &values.shape);
  std::vector<Blob> weights;
  if (iterating_ && was_pushed(number)) {
    weights = begun_.weights.blobs;  // the values may be a view of these
    end_iteration();
  }
  begin_push(key, what);
  split(number, values.data, values.type);
  if (assigns)
    for (const TablePiece& piece : placed_[number].pieces)
      assigned_[piece.block].insert(piece.slice);
  return pushed(number);
}

Handle SharedStore::pushed(std::size_t number) {
  mark_pushed(number);
  remember_gradient(number);
  if (pushes_.empty() || pushes_.back()->iteration != begun_.iteration)
    pushes_.push_back(std::make_shared<Handle::State>(
        Handle::State{.store = this, .is_push = true, .iteration = begun_.iteration}));
  Handle handle = handle_of(pushes_.back());
  const auto number_of_layer = static_cast<std::size_t>(placed_[number].layer);
  Layer& layer = layers_[number_of_layer];
  if (++layer.pushed == layer.keys.size()) {
    UserCall push{.kind = UserCall::Kind::push, .iteration = begun_.iteration};
    add_layer(number_of_layer, push);
    post(std::move(push));
  }
  return handle;
}

Blob& SharedStore::gradient_of(BlockId id) {
  Blob& gradient = gradients_[id.value()];
  if (!gradient) gradient = Blob::floats(job_->layout->block(id).floats);
  return gradient;
}

void SharedStore::add_layer(std::size_t layer, UserCall& call) {
  call.layers.push_back(static_cast<int>(layer));
  for (const std::size_t key : layers_[layer].keys)
    for (const TablePiece& piece : placed_[key].pieces) {
      float* const to = gradient_of(piece.block).mutable_floats() + piece.offset;
      // Without a push, memory of gradient() may have any values.
      const std::int64_t written = was_pushed(key) ? piece.count : 0;
      std::fill_n(to + written, piece.count + piece.padding - written, 0.0f);
    }
  for (const BlockId id : layers_[layer].blocks) {
#ifdef LEEWAY_CHECK_BUFFERS
    handed_over_[id] = gradients_[id.value()];
#endif
    call.gradients.emplace(id, std::move(gradients_[id.value()]));
    if (auto slices = assigned_.extract(id); !slices.empty())
      call.assigned.insert(std::move(slices));
  }
}

#ifdef LEEWAY_CHECK_BUFFERS
std::size_t SharedStore::hash_of_gradient(std::size_t number) const {
  std::size_t hash = 0;
  for (const TablePiece& piece : placed_[number].pieces) {
    const auto found = handed_over_.find(piece.block);
    const Blob& block =
        found == handed_over_.end() ? gradients_[piece.block.value()] : found->second;
    const auto* const bytes = reinterpret_cast<const char*>(block.as_floats() + piece.offset);
    const auto size = static_cast<std::size_t>(piece.count) * sizeof(float);
    hash = 31 * hash + std::hash<std::string_view>{}({bytes, size});
  }
  return hash;
}

void SharedStore::remember_gradient(std::size_t number) {
  hashes_[number] = hash_of_gradient(number);
}

void SharedStore::check_gradients() {
  for (const auto& [number, hash] : std::exchange(hashes_, {}))
    if (hash_of_gradient(number) != hash)
      throw StoreError(concat("the gradient of key \"", declarations_.keys[number].name,
                              "\" was written after its push; write to the memory of gradient() "
                              "only until push(key)"));
}
#else
void SharedStore::remember_gradient(std::size_t) {}
void SharedStore::check_gradients() {}
#endif

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
