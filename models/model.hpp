#pragma once
// Model: layers with a loss. The layers form a chain, except for the two branches of each residual
// block.
#include <memory>
#include <string>
#include <vector>

#include "models/layer.hpp"

namespace leeway {

/// A parameter of the model. `name` follows PyTorch's nn.Sequential: "1.weight", or
/// "3.body.0.weight" inside a residual block, which is a module with members `body` and `shortcut`.
struct Parameter {
  std::string name;
  int layer = 0;  // index into all layers, including those without parameters
  ParameterSpec spec;
  bool frozen = false;  // is not trained; never true for a statistic
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
  /// The index of the batch as the input of a layer.
  static constexpr int kBatch = -1;

  /// Builds and checks the layers for samples of shape `input`. Softmax cross entropy requires
  /// `classes` > 0 and `labels` per sample; the output is (labels, classes) for several labels.
  /// Mean squared error and sigmoid cross entropy require `target_count` numbers per sample; the
  /// latter also accepts two classes with one output. An error names the layer, the shape found and
  /// the shape needed. `frozen`: per layer of the list, whether its parameters are not trained;
  /// empty: all are. `precisions`: per layer of the list, of its products;
  /// empty: fp32.
  static Expected<std::shared_ptr<const Model>> build(const std::vector<plan::Layer>& layers,
                                                      plan::Loss loss, const Shape& input,
                                                      int classes, std::int64_t target_count,
                                                      std::int64_t labels = 1,
                                                      std::vector<bool> frozen = {},
                                                      std::vector<Precision> precisions = {});

  const Shape& input() const { return input_; }
  const Shape& output() const { return nodes_.back().output; }
  plan::Loss loss() const { return loss_; }
  /// Labels per sample, for softmax cross entropy.
  std::int64_t labels() const { return labels_; }

  /// Layers in topological order, as forward computes them. The layers of a residual block are
  /// among them, followed by a sum.
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

  /// Ordered by layer, and within a layer as in Layer::parameters().
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Parameters of layer `index` are [first_parameter(index), first_parameter(index + 1)).
  int first_parameter(int index) const { return first_parameter_[static_cast<std::size_t>(index)]; }
  /// The parameter of another layer that this layer also uses (Layer::borrows_embedding), or kNone.
  static constexpr int kNone = -1;
  int borrowed_parameter(int index) const { return node(index).borrowed; }
  /// Whether this layer's backward computes the gradient of a parameter, owned or borrowed, that is
  /// not frozen.
  bool has_weights(int index) const;
  bool is_frozen(int index) const { return node(index).frozen; }
  /// The number of weights, without statistics.
  std::int64_t parameter_count() const;
  /// Of these, the number that are not frozen.
  std::int64_t trained_count() const;
  std::int64_t flops_per_sample() const;  // forward

  /// Writes the initial values of parameter `index`, which depend only on seed, index and spec.
  /// out: spec.shape, row-major.
  void initialize(int index, std::uint64_t seed, float* out) const;

 private:
  struct Node {
    std::string path;
    std::unique_ptr<Layer> layer;
    int input = kBatch;
    int other = kBatch;
    bool is_sum = false;
    bool frozen = false;
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
