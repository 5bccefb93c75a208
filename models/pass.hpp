#pragma once
// Pass: one worker's activations while it runs forward and backward through a model.
#include <memory>
#include <span>

#include "models/part_pass.hpp"

namespace leeway {

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

  /// Asks for all layers and the loss, without waiting for them. weights: one view a parameter, in
  /// the model's order. versions: likewise, which values these are, in whatever numbers tell them
  /// apart within the pack cache; empty: values not seen before.
  void start_forward(const Batch& batch, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {});
  /// The outcome of the last forward; waits for it.
  PassResult result() { return pass_.result(stash_); }
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
  const float* outputs() const { return pass_.outputs(stash_); }
  /// Of a layer that borrows a parameter, after its backward: that parameter's gradient from this
  /// use alone, (the parameter's shape), on the executor's device. Backward of the layer that owns
  /// it adds it to that one's; who computes the one layer and not the other tells it by itself.
  const float* borrowed_gradient(int layer) const { return pass_.borrowed_gradient(layer); }

  /// Of a training pass, after a forward whose loss is not finite: the first layer with an output
  /// (or, failing that, the loss: layers()) that is not finite.
  int first_non_finite_layer() { return pass_.first_non_finite_layer(stash_, {}); }

  const Model& model() const { return pass_.model(); }
  Executor& executor() const { return pass_.executor(); }

 private:
  PartPass pass_;
  Stash& stash_;
};

}  // namespace leeway
