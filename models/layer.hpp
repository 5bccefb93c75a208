#pragma once
// Layer: one step of a model, with an explicit forward and backward.
//
// Shape letters, used in every kernel and layer: B batch, I inputs (features of one sample), O
// outputs, C classes or channels, H height, W width, T time, V vocabulary, D features of an
// embedding. A sample of shape (C, H, W) is an image: its shape is written as data sets and PyTorch
// write it, and its numbers lie channels last, (H, W, C), in every x and y. A layer object is
// immutable once its shape is known and shared by all workers; what belongs to one pass lives in
// the buffers it is given, and runs where `on` says.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "plan/values.hpp"
#include "tensor/row_slice.hpp"
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
  /// Above 0, nobody trains it: it is a statistic, backward writes this batch's value as its
  /// "gradient", and a shard keeps the running average, in which a whole round has this weight.
  double average = 0;
  /// Standard deviation of plan::Init::normal.
  double deviation = 0.01;
};

/// A parameter's values, or its gradient: all its rows, in order, in one slice or several. A vector
/// is never cut.
using ParameterView = std::span<const RowSlice<const float>>;
using GradientView = std::span<const RowSlice<float>>;

/// Weights in the forms that kernels want, made once a version and shared by those who want them.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  /// Memory of `on`'s device with parameter `parameter` of the present layer in `form`; `pack`
  /// fills it if nobody has yet. Stays until the pass's next forward.
  virtual const std::byte* get(int parameter, const kernels::PackForm& form,
                               const std::function<void(std::byte*)>& pack) = 0;
};

struct ForwardArgs {
  Executor& on;
  std::int64_t batch = 0;        // B
  const float* x = nullptr;      // (B, input shape)
  float* y = nullptr;            // (B, output shape), overwritten; equals x for an in-place layer
  std::byte* kept = nullptr;     // kept_bytes(B), for the backward of the same pass
  std::byte* scratch = nullptr;  // scratch_bytes(on, B, training)
  std::span<const ParameterView> weights;  // in the order of parameters()
  PackedWeights& packed;
  bool training = false;
  /// What the randomness of this pass depends on, one key a sample: (seed, epoch, sample) mixed.
  /// Null in evaluation.
  const std::uint64_t* sample_keys = nullptr;
};

struct BackwardArgs {
  Executor& on;
  std::int64_t batch = 0;
  const float* x = nullptr;   // as in forward
  const float* y = nullptr;   // as forward left it
  const float* dy = nullptr;  // (B, output shape): gradient of the mean loss over the batch; may be
                              // overwritten when it equals dx
  float* dx = nullptr;        // (B, input shape), overwritten; null when nobody needs it (the first
                              // layer with parameters)
  std::byte* kept = nullptr;
  std::byte* scratch = nullptr;
  std::span<const ParameterView> weights;
  PackedWeights& packed;
  /// Overwritten (=). Of a layer whose backward splits: empty where dx alone is asked for.
  std::span<const GradientView> gradients;
  const std::uint64_t* sample_keys = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// "linear"; for messages.
  virtual std::string_view kind() const = 0;
  /// Fixes the shape of one input sample and returns that of one output sample. The error says what
  /// the layer got and needs.
  virtual Expected<Shape> set_input(const Shape& input) = 0;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  /// True when it computes with the weight of the embedding before it (see LayerContext), and has
  /// no parameters of its own. `weights` is then that one's view, and `gradients` a buffer of the
  /// pass, which adds it to the embedding's own gradient; or, where the two are computed in
  /// different places, each place tells its gradient and whoever holds the weight adds them.
  virtual bool borrows_embedding() const { return false; }
  /// True when y may be the same memory as x, and dx the same as dy; backward then does not read x.
  virtual bool in_place() const { return false; }
  /// True when y is x under another shape: then neither forward nor backward is called.
  virtual bool is_view() const { return false; }
  /// False when backward never reads y: then an in-place layer that follows may overwrite it.
  virtual bool backward_reads_output() const { return true; }
  /// True when backward can be asked for in halves, for dx alone and for the gradients alone (dx
  /// null), and gives the same bits. The others' backward is done whole, when dx is wanted.
  virtual bool splits_backward() const { return false; }
  virtual std::size_t kept_bytes(std::int64_t) const { return 0; }
  /// Without `training`, backward is never called.
  virtual std::size_t scratch_bytes(Executor&, std::int64_t, bool /*training*/) const { return 0; }
  /// Multiplications and additions of forward for one sample; backward costs about twice that.
  virtual std::int64_t flops() const { return 0; }

  virtual void forward(const ForwardArgs& args) const = 0;
  virtual void backward(const BackwardArgs& args) const = 0;
};

/// Registers a kind of layer under a name for plan::CustomLayer. `make` gets
/// CustomLayer::arguments.
using LayerFactory = Expected<std::unique_ptr<Layer>> (*)(const std::string& arguments);
void register_layer(const std::string& name, LayerFactory make);

}  // namespace leeway
