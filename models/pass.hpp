#pragma once
// Pass: forward and backward through a whole model, one micro-batch at a time.
#include <memory>
#include <span>

#include "models/chunk_pass.hpp"

namespace leeway {

/// Samples of one forward of an evaluation: about 4 ms of work, so that other work gets its turn.
std::int64_t evaluation_batch(const Model& model);

/// Options of a pass; each has a default.
struct PassOptions {
  std::shared_ptr<Executor> on;       // null: the CPU
  std::shared_ptr<PackCache> packed;  // null: a private cache
  std::shared_ptr<Profile> profile;   // null: no profile
};

/// The ChunkPass of a whole model, with one Stash. Not thread-safe: one per worker.
class Pass {
 public:
  /// Allocates buffers for batches of up to `max_batch` samples. `backward` is true for training,
  /// and false for evaluation: dropout is off, and batch norm uses its running statistics.
  Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward,
       PassOptions options = {});

  /// Starts all layers and the loss, without waiting for them. weights: one view per parameter, in
  /// the model's order. versions: one number per parameter, which identifies its values in the
  /// pack cache; empty: values not seen before.
  void start_forward(const Batch& batch, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {});
  /// The result of the last forward; waits for it.
  PassResult result() { return pass_.result(stash_); }
  /// start_forward() and result().
  PassResult forward(const Batch& batch, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {}) {
    start_forward(batch, weights, versions);
    return result();
  }

  /// Backward through layer `layer`, called for layers()-1 .. 0 after a forward. weights: as in
  /// forward; only those of this layer are read. gradients: one view per parameter of the model;
  /// only those of this layer are overwritten (=). The gradient of a borrowed parameter includes
  /// the contributions of the borrowing layers.
  void backward(int layer, std::span<const ParameterView> weights,
                std::span<const GradientView> gradients);

  /// Outputs of the last forward, (B, output), on the executor's device.
  const float* outputs() const { return pass_.outputs(stash_); }
  /// The contribution of this layer to the gradient of a borrowed parameter, (its shape), on the
  /// executor's device. Requires a backward of `layer`. The backward of the owning layer adds it to
  /// that layer's gradient.
  const float* borrowed_gradient(int layer) const { return pass_.borrowed_gradient(layer); }

  /// After a training forward with a loss that is not finite: the first layer whose output is not
  /// finite, or layers() if only the loss is not.
  int first_non_finite_layer() { return pass_.first_non_finite_layer(stash_, {}); }

  const Model& model() const { return pass_.model(); }
  Executor& executor() const { return pass_.executor(); }

 private:
  ChunkPass pass_;
  Stash& stash_;
};

}  // namespace leeway
