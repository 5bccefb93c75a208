#pragma once
// Layer: one step of a model, with an explicit forward and backward.
//
// Shape letters, used in every kernel and layer: B batch, I inputs (features of one sample), O
// outputs, C classes or channels, H height, W width, T time, V vocabulary, D features of an
// embedding. A sample of shape (C, H, W) is an image. Shapes are written channels first, as in data
// sets and PyTorch, but every x and y stores images channels last, (H, W, C). All workers share a
// layer object, which is immutable after set_input(). The state of a pass is in the buffers of its
// arguments, and the pass runs on the executor `on`.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "plan/values.hpp"
#include "tensor/precision.hpp"
#include "tensor/shape.hpp"

namespace leeway {

class Executor;
namespace kernels {
struct PackForm;
}

/// A parameter of a layer. `name` is PyTorch's ("weight", "bias").
struct ParameterSpec {
  std::string name;
  Shape shape;
  plan::Init init = plan::Init::he;
  /// Fan-in and fan-out that the initialisation scales by.
  std::int64_t fan_in = 1;
  std::int64_t fan_out = 1;
  /// Above 0 for a statistic, which is not trained: backward writes the batch's value as its
  /// "gradient", and the shard keeps a running average in which a whole round has this weight.
  double average = 0;
  /// Standard deviation of plan::Init::normal.
  double deviation = 0.01;
};

/// A parameter's values, or its gradient: all its rows in order, in one or several slices. A vector
/// is always one slice.
using ParameterView = std::span<const RowSlice<const float>>;
using GradientView = std::span<const RowSlice<float>>;

/// Weights packed for kernels, once per version for all users.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  /// The current layer's parameter `parameter` in `form`, in the memory of the executor's device.
  /// Calls `pack` to fill the memory if it is new. Valid until the pass's next forward.
  virtual const std::byte* get(int parameter, const kernels::PackForm& form,
                               const std::function<void(std::byte*)>& pack) = 0;
};

struct ForwardArgs {
  Executor& on;
  std::int64_t batch = 0;        // B
  const float* x = nullptr;      // (B, input shape)
  float* y = nullptr;            // (B, output shape), overwritten; equals x for an in-place layer
  std::byte* kept = nullptr;     // kept_bytes(B), saved for the backward of the same pass
  std::byte* scratch = nullptr;  // scratch_bytes(on, B, training)
  std::span<const ParameterView> weights;  // in the order of parameters()
  PackedWeights& packed;
  bool training = false;
  /// One key per sample for random draws: a hash of (seed, epoch, sample). Null in evaluation.
  const std::uint64_t* sample_keys = nullptr;
};

struct BackwardArgs {
  Executor& on;
  std::int64_t batch = 0;
  const float* x = nullptr;   // as in forward
  const float* y = nullptr;   // the result of forward
  const float* dy = nullptr;  // (B, output shape): gradient of the mean loss over the batch, times
                              // Batch::loss_scale; may be overwritten when it equals dx
  float* dx = nullptr;        // (B, input shape), overwritten; null if no layer reads it, as for
                              // the first layer with parameters
  std::byte* kept = nullptr;
  std::byte* scratch = nullptr;
  std::span<const ParameterView> weights;
  PackedWeights& packed;
  /// Overwritten (=). Empty if only dx is requested, which requires splits_backward().
  std::span<const GradientView> gradients;
  const std::uint64_t* sample_keys = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// "linear"; for error texts.
  virtual std::string_view kind() const = 0;
  /// Sets the shape of one input sample and returns that of one output sample. The error names the
  /// shape found and the shape needed.
  virtual Expected<Shape> set_input(const Shape& input) = 0;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  /// True if the names of its parameters are complete, without the place of the layer.
  virtual bool names_parameters() const { return false; }
  /// True if the layer has no parameters and uses the weight of the embedding before it (see
  /// LayerContext). `weights` is then a view of that weight, and `gradients` a buffer of the pass,
  /// which adds it to the embedding's gradient. If the two layers are in different chunks, each
  /// stage pushes its gradient and the shard adds the two.
  virtual bool borrows_embedding() const { return false; }
  /// True if y may be the same memory as x, and dx the same as dy. Backward then does not read x.
  virtual bool in_place() const { return false; }
  /// True if y is x with another shape. Forward and backward are then not called.
  virtual bool is_view() const { return false; }
  /// False if backward never reads y. A following in-place layer may then overwrite it.
  virtual bool backward_reads_output() const { return true; }
  /// True if two calls of backward, one for only dx and one for only the gradients (dx null), give
  /// the same bits as one call. Other layers compute both in the backward for inputs.
  virtual bool splits_backward() const { return false; }
  virtual std::size_t kept_bytes(std::int64_t) const { return 0; }
  /// Without `training`, backward is never called.
  virtual std::size_t scratch_bytes(Executor&, std::int64_t, bool /*training*/) const { return 0; }
  /// The precision of its matrix products that the plan chooses; none for other layers.
  virtual std::optional<Precision> precision() const { return std::nullopt; }
  /// Multiplications and additions of forward for one sample; backward costs about twice that.
  virtual std::int64_t flops() const { return 0; }

  virtual void forward(const ForwardArgs& args) const = 0;
  virtual void backward(const BackwardArgs& args) const = 0;
};

/// Registers a kind of layer under a name for plan::CustomLayer. `make` receives
/// CustomLayer::arguments.
using LayerFactory = Expected<std::unique_ptr<Layer>> (*)(const std::string& arguments);
void register_layer(const std::string& name, LayerFactory make);

}  // namespace leeway
