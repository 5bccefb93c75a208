#pragma once
// Model: layers with a loss. Mostly a chain; a residual block is two ways that part and meet again.
#include <memory>
#include <string>
#include <vector>

#include "models/layer.hpp"

namespace leeway {

/// A parameter of the whole model. `name` is what PyTorch's nn.Sequential gives it: "1.weight", or
/// "3.body.0.weight" inside a residual block, a module with the members `body` and `shortcut`.
struct Parameter {
  std::string name;
  int layer = 0;  // index into all layers, those without parameters included
  ParameterSpec spec;
};

class Model;

/// Layers [first, end) of a model.
struct ModelChunk {
  int first = 0;
  int end = 0;
  static ModelChunk whole(const Model& model);
  bool has(int layer) const { return layer >= first && layer < end; }
  bool operator==(const ModelChunk&) const = default;
};

class Model {
 public:
  /// Where a layer's input comes from when it is the batch itself.
  static constexpr int kBatch = -1;

  /// Builds and checks the layers for samples of shape `input` and targets as the loss needs them:
  /// `classes` > 0 for softmax cross entropy, with `labels` of them a sample (more than one: the
  /// output is (labels, classes)); `target_count` numbers for mean squared error and sigmoid cross
  /// entropy (which also takes two classes and one output). An error names the layer, the shape it
  /// got and the shape it needs.
  static Expected<std::shared_ptr<const Model>> build(const std::vector<plan::Layer>& layers,
                                                      plan::Loss loss, const Shape& input,
                                                      int classes, std::int64_t target_count,
                                                      std::int64_t labels = 1);

  const Shape& input() const { return input_; }
  const Shape& output() const { return nodes_.back().output; }
  plan::Loss loss() const { return loss_; }
  /// Of a sample, for softmax cross entropy.
  std::int64_t labels() const { return labels_; }

  /// Layers in the order in which forward computes them, each after those that it reads. The parts
  /// of a residual block are layers like others, with a sum at its end.
  int layers() const { return static_cast<int>(nodes_.size()); }
  const Layer& layer(int index) const { return *node(index).layer; }
  /// The layer whose output `index` reads, or kBatch.
  int input_of(int index) const { return node(index).input; }
  /// For a sum: the other layer that it reads, or kBatch.
  int other_input_of(int index) const { return node(index).other; }
  bool is_sum(int index) const { return node(index).is_sum; }
  /// "layer 3 (linear)", "layer 3.body.0 (conv2d)".
  std::string layer_name(int index) const;
  /// Shape of one sample after layer `index`; kBatch gives the input.
  const Shape& output_of(int index) const { return index == kBatch ? input_ : node(index).output; }

  /// In order of layers, and within a layer in its own order.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Parameters of layer `index` are [first_parameter(index), first_parameter(index + 1)).
  int first_parameter(int index) const { return first_parameter_[static_cast<std::size_t>(index)]; }
  /// The parameter of another layer that this one computes with too (Layer::borrows_embedding), or
  /// kNone.
  static constexpr int kNone = -1;
  int borrowed_parameter(int index) const { return node(index).borrowed; }
  /// Whether backward of this layer gives a gradient of a parameter, its own or a borrowed one.
  bool has_weights(int index) const {
    return first_parameter(index) < first_parameter(index + 1) ||
           borrowed_parameter(index) != kNone;
  }
  /// Numbers that are trained; statistics are not among them.
  std::int64_t parameter_count() const;
  std::int64_t flops_per_sample() const;  // forward

  /// Writes the initial values of parameter `index`, which depend on seed, index and spec alone.
  /// out: spec.shape, row-major.
  void initialize(int index, std::uint64_t seed, float* out) const;

 private:
  struct Node {
    std::string path;
    std::unique_ptr<Layer> layer;
    int input = kBatch;
    int other = kBatch;
    bool is_sum = false;
    int borrowed = kNone;  // a parameter
    Shape output;
  };
  class Builder;

  Model() = default;
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }

  plan::Loss loss_{};
  std::int64_t labels_ = 1;
  Shape input_;
  std::vector<Node> nodes_;
  std::vector<Parameter> parameters_;
  std::vector<int> first_parameter_;
};

inline ModelChunk ModelChunk::whole(const Model& model) {
  return {0, model.layers()};
}

}  // namespace leeway
