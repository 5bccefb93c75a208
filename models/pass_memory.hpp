#pragma once
// PassMemory: the buffers of a chunk's pass. Activations and pending gradients belong to one
// micro-batch, and its Stash holds them. Micro-batches share all other buffers.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/pass_plan.hpp"
#include "models/stash.hpp"

namespace leeway {

class PassMemory {
 public:
  /// Keeps references to its arguments. Allocates for batches of up to `max_batch` samples.
  PassMemory(const Model& model, const PassPlan& plan, Executor& on, std::int64_t max_batch,
             bool training);

  /// The buffer that goes to the next chunk. PassPlan::kNone in the last chunk, and if the output
  /// is the input under another shape.
  int sent() const;

  // The buffers of one micro-batch.
  /// Also allocates the output for the next chunk.
  void take_activations(Stash& stash);
  void drop_activations(Stash& stash);
  void take_pending(Stash& stash);
  void drop_pending(Stash& stash);

  /// The output of a layer.
  const float* output(const Stash& stash, int layer) const;
  float* writable_output(Stash& stash, int layer) const;
  /// The buffer that the layer saves for its backward.
  std::byte* kept(Stash& stash, int layer) const;
  /// A gradient buffer of the plan; null for PassPlan::kNone.
  float* gradient(Stash& stash, int buffer);
  const float* readable_gradient(Stash& stash, int buffer);

  // The buffers for one micro-batch at a time.
  /// The gradient of a parameter that the layer borrows from another layer of this chunk; empty for
  /// other layers.
  Blob& borrowed(int layer) { return borrowed_[static_cast<std::size_t>(layer)]; }
  std::byte* scratch() { return scratch_.mutable_data(); }

 private:
  const Shape& output_shape() const { return model_.output_of(plan_.chunk.end - 1); }
  bool is_last() const { return plan_.chunk.end == model_.layers(); }
  Activations allocate_activations() const;

  const Model& model_;
  const PassPlan& plan_;
  Executor& on_;
  const std::int64_t max_batch_;
  const bool training_;
  std::vector<Blob> gradients_;  // by the plan's gradient buffers: those with Place::working
  std::vector<Blob> borrowed_;   // per layer
  Blob scratch_;
  std::vector<Activations> free_activations_;
  std::vector<std::vector<Blob>> free_pending_;
};

}  // namespace leeway
