#pragma once
// PartPass: forward and backward through a part of a model, for several micro-batches at once.
//
// A part begins and ends where the model may be cut (pieces.hpp), so it has one input and one
// output. The first part reads a batch, the last one computes the loss; between two parts go blobs,
// the output of the one and its gradient back. What backward of a micro-batch needs lies in its
// Stash; all else is shared by the micro-batches, which take turns. Pass is the part that is
// everything, with one stash.
//
//   Stash& stash = pass.take_stash();
//   Blob y = pass.start_forward(stash, {.batch = batch, .input = x}, weights, versions);
//   ...                                              // y to the next part; dy comes back from it
//   Blob dx = pass.backward(stash, Half::both, dy, weights, gradients);  // to the part before
//   pass.release(stash);
//
// Weights are given with each call: a backward takes those that its forward has read.
#include <memory>
#include <span>
#include <vector>

#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "models/profile.hpp"
#include "models/stash.hpp"

namespace leeway {

class GradientSum;

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

/// Images that have to move before layers read them, since data sets keep their channels first.
inline bool moves_samples(const Shape& input) {
  return input.rank() == 3 && input[0] > 1 && input[1] * input[2] > 1;
}

/// What one part reads of a micro-batch.
struct PartInput {
  /// `x` is for the first part, labels or targets for the last, size and keys for all.
  Batch batch;
  /// Of the first part: host memory with the samples, in place of batch.x, which would have to stay
  /// until backward is done. Of the others: the output of the part before, (B, its shape).
  /// Host memory is read until what start_forward() asks for is done (executor().wait_mark()).
  Blob input;
};

struct PartOptions {
  std::shared_ptr<Executor> on;       // null: the processor
  std::shared_ptr<PackCache> packed;  // null: one of its own
  std::shared_ptr<Profile> profile;   // null: nothing is timed
  /// Several micro-batches may be between forward and backward at once.
  bool several = true;
  /// Backward comes in halves.
  bool halves = false;
  /// Keep a micro-batch's input alone, and run forward again before backward: the same bits, since
  /// dropout draws by sample keys (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
  /// 2016).
  bool recompute = false;
};

/// Of a backward: the gradient of the part's input, which the part before waits for, and those of
/// the parameters. Layers that cannot tell them apart (Layer::splits_backward: norms and positions
/// among them) do all at the half for the inputs.
enum class Half : std::uint8_t { both, inputs, weights };

/// Not thread-safe: one a stage.
class PartPass {
 public:
  /// For batches of up to `max_batch` samples. Requires cuts that can_split_before() allows.
  /// Without `training` the part is the whole model: dropout rests, batch norm uses its running
  /// statistics.
  PartPass(std::shared_ptr<const Model> model, ModelChunk part, std::int64_t max_batch,
           bool training, PartOptions options = {});
  ~PartPass();

  /// One for a micro-batch. It is the pass's, and goes back with release(), where its memory serves
  /// the next one.
  Stash& take_stash();
  void release(Stash& stash);

  /// Asks for all layers, and in the last part for the loss, without waiting for them. Gives what
  /// the next part reads, (B, output); the last one gives none. weights: one view a parameter of
  /// the model, those of other parts' are not looked at. versions: likewise, which values these
  /// are, in whatever numbers tell them apart within the pack cache; empty: values not seen before.
  Blob start_forward(Stash& stash, const PartInput& input, std::span<const ParameterView> weights,
                     std::span<const std::uint64_t> versions = {});
  /// The outcome of the last part's forward; waits for it.
  PassResult result(const Stash& stash);

  /// All layers of a backward, or of a half of it; after `inputs` comes `weights`, and other
  /// micro-batches may come between. output_gradient: what the next part gave, (B, output); empty
  /// for the last part, and for the half for the weights. gradients: one view a parameter of the
  /// model, of which those of this part are overwritten; those of a parameter that a layer borrows
  /// from another part hold this part's share. Gives the gradient of the part's input, or nothing
  /// where nobody wants it: the first part, and the half for the weights.
  Blob backward(Stash& stash, Half half, Blob output_gradient,
                std::span<const ParameterView> weights, std::span<const GradientView> gradients);

  /// The same, with gradients that are added to those of the micro-batches before.
  Blob backward(Stash& stash, Half half, Blob output_gradient,
                std::span<const ParameterView> weights, GradientSum& sum);

  // The same layer by layer: start, each layer of the part from the last to the first, finish.
  void start_backward(Stash& stash, Half half, Blob output_gradient,
                      std::span<const ParameterView> weights);
  void backward_layer(Stash& stash, int layer, std::span<const ParameterView> weights,
                      std::span<const GradientView> gradients);
  Blob finish_backward(Stash& stash);
  /// Whether this half of a backward writes gradients of the layer's parameters.
  bool writes_gradients(int layer, Half half) const;

  /// Of a stash after forward, unless it recomputes: the output of the part's last layer.
  const float* outputs(const Stash& stash) const;
  /// Of a layer that borrows a parameter of this same part, after its backward: that parameter's
  /// gradient from this use alone.
  const float* borrowed_gradient(int layer) const;
  /// Of a training pass, after a forward whose loss is not finite: the first layer of the part with
  /// an output that is not finite, or the part's end. Computes forward again where it has been
  /// forgotten.
  int first_non_finite_layer(Stash& stash, std::span<const ParameterView> weights);

  const Model& model() const { return *model_; }
  ModelChunk part() const;
  Executor& executor() const;

 private:
  struct State;
  /// Gives back what the stash holds of its latest micro-batch.
  void empty(Stash& stash);

  std::shared_ptr<const Model> model_;
  std::unique_ptr<State> state_;
};

}  // namespace leeway
