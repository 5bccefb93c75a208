#include "models/pass_memory.hpp"

#include <algorithm>
#include <utility>

namespace leeway {

PassMemory::PassMemory(const Model& model, const PassPlan& plan, Executor& on,
                       std::int64_t max_batch, bool training)
    : model_(model), plan_(plan), on_(on), max_batch_(max_batch), training_(training) {
  for (std::size_t i = 0; i < plan_.gradient_floats.size(); ++i) {
    const bool works = plan_.gradient_place[i] == PassPlan::Place::working;
    gradients_.push_back(works ? on_.floats(max_batch_ * plan_.gradient_floats[i]) : Blob());
  }
  std::size_t largest_scratch = 0;
  borrowed_.resize(static_cast<std::size_t>(model_.layers()));
  for (int i = plan_.chunk.first; i < plan_.chunk.end; ++i) {
    largest_scratch =
        std::max(largest_scratch, model_.layer(i).scratch_bytes(on_, max_batch_, training_));
    const int parameter = model_.borrowed_parameter(i);
    if (!training_ || parameter == Model::kNone) continue;
    const auto& owned = model_.parameters()[static_cast<std::size_t>(parameter)];
    if (plan_.chunk.has(owned.layer)) borrowed(i) = on_.floats(owned.spec.shape.count());
  }
  scratch_ = on_.allocate(largest_scratch);
  free_activations_.push_back(allocate_activations());  // for the first micro-batch
}

int PassMemory::sent() const {
  return is_last() ? PassPlan::kNone : plan_.output_of(plan_.chunk.end - 1);
}

Activations PassMemory::allocate_activations() const {
  const ModelChunk& chunk = plan_.chunk;
  Activations activations;
  for (std::size_t i = 0; i < plan_.output_floats.size(); ++i)
    activations.outputs.push_back(
        static_cast<int>(i) == sent() ? Blob() : on_.floats(max_batch_ * plan_.output_floats[i]));
  std::size_t largest = 0;
  for (int i = chunk.first; i < chunk.end; ++i)
    largest = std::max(largest, model_.layer(i).kept_bytes(max_batch_));
  // Without backward no layer reads what it kept, so all layers keep it in the same place.
  const Blob shared = training_ ? Blob() : on_.allocate(largest);
  for (int i = chunk.first; i < chunk.end; ++i)
    activations.kept.push_back(training_ ? on_.allocate(model_.layer(i).kept_bytes(max_batch_))
                                         : shared);
  const int dy = plan_.output_gradient;
  if (dy != PassPlan::kNone &&
      plan_.gradient_place[static_cast<std::size_t>(dy)] == PassPlan::Place::kept)
    activations.loss_gradient = on_.floats(max_batch_ * output_shape().count());
  return activations;
}

void PassMemory::take_activations(Stash& stash) {
  if (free_activations_.empty()) {
    stash.activations = allocate_activations();
  } else {
    stash.activations = std::move(free_activations_.back());
    free_activations_.pop_back();
  }
  if (is_last()) return;
  const auto floats = static_cast<std::size_t>(stash.size * output_shape().count());
  stash.output = on_.allocate(floats * sizeof(float));
}

void PassMemory::drop_activations(Stash& stash) {
  if (stash.activations) free_activations_.push_back(std::move(*stash.activations));
  stash.activations.reset();
  if (stash.output) on_.end_read(stash.output);
  stash.output.reset();
}

void PassMemory::take_pending(Stash& stash) {
  if (!free_pending_.empty()) {
    stash.pending = std::move(free_pending_.back());
    free_pending_.pop_back();
    return;
  }
  for (std::size_t i = 0; i < plan_.gradient_floats.size(); ++i)
    stash.pending.push_back(plan_.gradient_place[i] == PassPlan::Place::pending
                                ? on_.floats(max_batch_ * plan_.gradient_floats[i])
                                : Blob());
}

void PassMemory::drop_pending(Stash& stash) {
  if (!stash.pending.empty()) free_pending_.push_back(std::move(stash.pending));
  stash.pending.clear();
}

const float* PassMemory::output(const Stash& stash, int layer) const {
  const int buffer = plan_.output_of(layer);
  if (buffer == PassPlan::kNone) return stash.x;
  if (buffer == sent()) return stash.output.as_floats();
  return stash.activations->outputs[static_cast<std::size_t>(buffer)].as_floats();
}

float* PassMemory::writable_output(Stash& stash, int layer) const {
  const int buffer = plan_.output_of(layer);
  if (buffer == sent()) return stash.output.mutable_floats();
  return stash.activations->outputs[static_cast<std::size_t>(buffer)].mutable_floats();
}

std::byte* PassMemory::kept(Stash& stash, int layer) const {
  const auto index = static_cast<std::size_t>(layer - plan_.chunk.first);
  return stash.activations->kept[index].mutable_data();
}

float* PassMemory::gradient(Stash& stash, int buffer) {
  if (buffer == PassPlan::kNone) return nullptr;
  const auto index = static_cast<std::size_t>(buffer);
  switch (plan_.gradient_place[index]) {
    case PassPlan::Place::working:
      return gradients_[index].mutable_floats();
    case PassPlan::Place::kept:
      return stash.activations->loss_gradient.mutable_floats();
    case PassPlan::Place::pending:
      return stash.pending[index].mutable_floats();
    case PassPlan::Place::outside:
      break;
  }
  return stash.input_gradient.mutable_floats();
}

const float* PassMemory::readable_gradient(Stash& stash, int buffer) {
  if (buffer != PassPlan::kNone && buffer == plan_.output_gradient &&
      plan_.gradient_place[static_cast<std::size_t>(buffer)] == PassPlan::Place::outside)
    return stash.output_gradient.as_floats();
  return gradient(stash, buffer);
}

}  // namespace leeway
