#pragma once
// ChunkPass: forward and backward through a chunk of a model, for several micro-batches at once.
//
// A chunk begins and ends where the model can be split (pieces.hpp), so it has one input and one
// output. The first chunk reads a batch, and the last one computes the loss. Blobs connect two
// chunks: the output of the first, and the gradient of that output on the way back. A Stash holds
// the state that the backward of one micro-batch needs. Micro-batches share all other memory.
// Pass is the shorthand for a whole model and one micro-batch at a time.
//
//   Stash& stash = pass.take_stash();
//   Blob y = pass.start_forward(stash, {.batch = batch, .input = x}, weights, versions);
//   ...                             // y goes to the next chunk, and dy comes back from it
//   Blob dx = pass.backward(stash, BackwardFor::both, dy, weights, gradients);
//   pass.release(stash);            // dx goes to the previous chunk
//
// The caller passes the weights with each call: a backward reads the weights of its forward.
#include <memory>
#include <span>
#include <vector>

#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "models/profile.hpp"
#include "models/stash.hpp"

namespace leeway {

class GradientSum;
class LayerRunner;

struct PassResult {
  double loss = 0;  // mean over the batch, and over the labels of a sample
  /// Number of correct argmax predictions; with sigmoid cross entropy, the number of outputs on the
  /// right side; 0 with mean squared error.
  std::int64_t correct = 0;
};

struct ChunkOptions {
  std::shared_ptr<Executor> on;       // null: the CPU
  std::shared_ptr<PackCache> packed;  // null: a private cache
  std::shared_ptr<Profile> profile;   // null: no profile
  /// Several micro-batches can be between forward and backward at once.
  bool several = true;
  /// Backward comes as a backward for inputs and a later backward for weights.
  bool split_backward = false;
  /// Keep only a micro-batch's input, and run forward again before backward. The bits are the same,
  /// because dropout draws by sample keys (Chen et al., "Training Deep Nets with Sublinear Memory
  /// Cost", 2016).
  bool recompute = false;
};

/// The purpose of a backward: the gradient of the chunk's input, which the previous chunk waits
/// for, the gradients of the parameters, or both. Layers that cannot separate the two (see
/// Layer::splits_backward: norms and positions among them) do both in the backward for inputs.
enum class BackwardFor : std::uint8_t { both, inputs, weights };

/// Not thread-safe: one per stage.
class ChunkPass {
 public:
  /// For batches of up to `max_batch` samples. Requires splits that can_split_before() allows. An
  /// evaluation (`training` false) requires the whole model; dropout is off, and batch norm uses
  /// its running statistics.
  ChunkPass(std::shared_ptr<const Model> model, ModelChunk chunk, std::int64_t max_batch,
            bool training, ChunkOptions options = {});
  ~ChunkPass();

  /// A stash for one micro-batch. The pass owns it; after release() its memory serves the next
  /// micro-batch.
  Stash& take_stash();
  void release(Stash& stash);

  /// Starts all layers, and in the last chunk the loss, without waiting for them. Returns the input
  /// of the next chunk, (B, output); empty in the last chunk.
  /// weights: one view per parameter of the model; only those of this chunk are read.
  /// versions: one number per parameter, which identifies its values in the pack cache; empty:
  /// values not seen before.
  Blob start_forward(Stash& stash, const ChunkInput& input, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {});
  /// The result of the last chunk's forward; waits for it.
  PassResult result(const Stash& stash);

  /// Backward through all layers. A backward for weights follows the backward for inputs, and other
  /// micro-batches may come between.
  /// output_gradient: from the next chunk, (B, output); empty in the last chunk, and in a backward
  /// for weights.
  /// gradients: one view per parameter of the model; those of this chunk are overwritten (=). The
  /// gradient of a parameter that a layer borrows from another chunk is this chunk's contribution.
  /// Returns the gradient of the chunk's input; empty in the first chunk, if no parameter before
  /// the chunk is trained, and in a backward for weights.
  Blob backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                std::span<const ParameterView> weights, std::span<const GradientView> gradients);

  /// The same, adding the gradients to those of the previous micro-batches.
  Blob backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                std::span<const ParameterView> weights, GradientSum& sum);

  // The same layer by layer: start, each layer of the chunk from the last to the first, finish.
  void start_backward(Stash& stash, BackwardFor purpose, Blob output_gradient,
                      std::span<const ParameterView> weights);
  void backward_layer(Stash& stash, int layer, std::span<const ParameterView> weights,
                      std::span<const GradientView> gradients);
  Blob finish_backward(Stash& stash);
  /// Whether a backward for `purpose` writes gradients of the layer's parameters.
  bool writes_gradients(int layer, BackwardFor purpose) const;

  /// The output of the chunk's last layer. Requires a forward without `recompute`.
  const float* outputs(const Stash& stash) const;
  /// The contribution of this layer to the gradient of a borrowed parameter. Requires a backward of
  /// `layer`, and the parameter's owner in this chunk.
  const float* borrowed_gradient(int layer) const;
  /// After a training forward with a loss that is not finite: the first layer of the chunk whose
  /// output is not finite, or the chunk's end. Runs forward again if `recompute` dropped it.
  int first_non_finite_layer(Stash& stash, std::span<const ParameterView> weights);

  const Model& model() const { return *model_; }
  ModelChunk chunk() const;
  Executor& executor() const;

 private:
  /// Returns the memory of the stash's latest micro-batch.
  void clear(Stash& stash);

  std::shared_ptr<const Model> model_;
  std::unique_ptr<LayerRunner> runner_;
};

}  // namespace leeway
