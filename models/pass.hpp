#pragma once
// Pass: one worker's activations while it runs forward and backward through a model.
#include <memory>
#include <span>

#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "models/profile.hpp"

namespace leeway {

/// Host memory, read until the pass's result is known. Images as data sets have them, (C, H, W).
struct Batch {
  std::int64_t size = 0;                       // B
  const float* x = nullptr;                    // (B, input)
  const std::int32_t* labels = nullptr;        // (B, labels), for data with classes
  const float* targets = nullptr;              // (B, target_count), for data without
  std::span<const std::uint64_t> sample_keys;  // B; in evaluation empty, or not looked at
};

struct PassResult {
  double loss = 0;  // mean over the batch, and over the labels of a sample
  /// Labels that are told by their largest output; with sigmoid cross entropy, outputs on the right
  /// side; 0 otherwise.
  std::int64_t correct = 0;
};

/// What a pass needs beside the model.
struct PassOptions {
  std::shared_ptr<Executor> on;       // null: the processor
  std::shared_ptr<PackCache> packed;  // null: one of its own
  std::shared_ptr<Profile> profile;   // null: nothing is timed
};

/// Forward and backward of one model over one micro-batch at a time. Not thread-safe: one a worker.
class Pass {
 public:
  /// Holds buffers for batches of up to `max_batch` samples. With backward = true it trains; with
  /// false it evaluates: dropout rests, batch norm uses its running statistics.
  Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward,
       PassOptions options = {});
  ~Pass();

  /// Asks for all layers and the loss, without waiting for them. weights: one view a parameter, in
  /// the model's order. versions: likewise, which values these are, in whatever numbers tell them
  /// apart within the pack cache; empty: values not seen before.
  void start_forward(const Batch& batch, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {});
  /// The outcome of the last forward; waits for it.
  PassResult result();
  /// Both.
  PassResult forward(const Batch& batch, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {}) {
    start_forward(batch, weights, versions);
    return result();
  }

  /// Backward through layer `layer`; layers come in order layers()-1 .. 0 after a forward. weights
  /// as in forward (only those of this layer are read); gradients: one view a parameter of the
  /// model (only those of this layer are written; those of a parameter that other layers borrow
  /// hold their share too).
  void backward(int layer, std::span<const ParameterView> weights,
                std::span<const GradientView> gradients);

  /// Outputs of the last forward, (B, output), on the executor's device.
  const float* outputs() const;
  /// Of a layer that borrows a parameter, after its backward: that parameter's gradient from this
  /// use alone, (the parameter's shape), on the executor's device. Backward of the layer that owns
  /// it adds it to that one's; who computes the one layer and not the other tells it by itself.
  const float* borrowed_gradient(int layer) const;

  /// Of a training pass, after a forward whose loss is not finite: the first layer with an output
  /// (or, failing that, the loss: layers()) that is not finite.
  int first_non_finite_layer();

  const Model& model() const { return *model_; }
  Executor& executor() const;

 private:
  std::shared_ptr<const Model> model_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway
