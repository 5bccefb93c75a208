#pragma once
// Model: a chain of layers with a loss, and Pass: one worker's activations while it runs forward
// and backward.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/layer.hpp"

namespace leeway {

/// A parameter of the whole model. `name` is what PyTorch's nn.Sequential gives it: "1.weight".
struct Parameter {
  std::string name;
  int layer = 0;  // index into the layers that have parameters or not, counted from 0
  ParameterSpec spec;
};

class Model {
 public:
  /// Builds and checks the chain for samples of shape `input` and targets as the loss needs them:
  /// `classes` > 0 for softmax cross entropy, `target_count` numbers for mean squared error. An
  /// error names the layer, the shape it got and the shape it needs.
  static Expected<std::shared_ptr<const Model>> build(const std::vector<plan::Layer>& layers,
                                                      plan::Loss loss, const Shape& input,
                                                      int classes, std::int64_t target_count);

  const Shape& input() const { return shapes_.front(); }
  const Shape& output() const { return shapes_.back(); }
  plan::Loss loss() const { return loss_; }
  int layers() const { return static_cast<int>(layers_.size()); }
  const Layer& layer(int index) const { return *layers_[static_cast<std::size_t>(index)]; }
  /// "layer 3 (linear)".
  std::string layer_name(int index) const;
  /// Shape of one sample before layer `index`; index == layers() gives the output.
  const Shape& shape_before(int index) const { return shapes_[static_cast<std::size_t>(index)]; }
  /// In order of layers, and within a layer in its own order.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Parameters of layer `index` are [first_parameter(index), first_parameter(index + 1)).
  int first_parameter(int index) const { return first_parameter_[static_cast<std::size_t>(index)]; }
  std::int64_t parameter_count() const;
  std::int64_t flops_per_sample() const;  // forward

  /// Writes the initial values of parameter `index`, which depend on seed, index and spec alone.
  /// out: spec.shape, row-major.
  void initialize(int index, std::uint64_t seed, float* out) const;

 private:
  Model() = default;
  plan::Loss loss_{};
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<Shape> shapes_;
  std::vector<Parameter> parameters_;
  std::vector<int> first_parameter_;
};

/// Registers a kind of layer under a name for plan::CustomLayer. `make` gets
/// CustomLayer::arguments.
using LayerFactory = Expected<std::unique_ptr<Layer>> (*)(const std::string& arguments);
void register_layer(const std::string& name, LayerFactory make);

struct Batch {
  std::int64_t size = 0;                       // B
  const float* x = nullptr;                    // (B, input)
  const std::int32_t* labels = nullptr;        // (B), for softmax cross entropy
  const float* targets = nullptr;              // (B, target_count), for mean squared error
  std::span<const std::uint64_t> sample_keys;  // B, or empty in evaluation
};

struct PassResult {
  double loss = 0;           // mean over the batch
  std::int64_t correct = 0;  // samples whose largest output is their label; 0 without labels
};

/// Forward and backward of one model over one micro-batch at a time. Not thread-safe: one a worker.
class Pass {
 public:
  /// Holds buffers for batches of up to `max_batch` samples; with backward = false, for forward
  /// alone.
  Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward);

  /// Runs all layers and the loss. weights: one view a parameter, in the model's order.
  PassResult forward(const Batch& batch, std::span<const ParameterView> weights);

  /// Backward through layer `layer`; layers come in order layers()-1 .. 0 after a forward. weights
  /// as in forward (only those of this layer are read); gradients: one view a parameter of the
  /// model (only those of this layer are written).
  void backward(int layer, std::span<const ParameterView> weights,
                std::span<const GradientView> gradients);

  /// Outputs of the last forward: (B, output).
  const float* outputs() const;

  /// After a forward whose loss is not finite: the first layer with an output (or, failing that,
  /// the loss: layers()) that is not finite.
  int first_non_finite_layer() const;

  const Model& model() const { return *model_; }

 private:
  std::shared_ptr<const Model> model_;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leeway
