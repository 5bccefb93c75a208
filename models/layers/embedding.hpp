#pragma once
// Embedding: maps each token of a sample (T) to a row of "weight" (V, D), giving (T, D).
#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Embedding final : public Layer {
 public:
  /// Requires vocabulary > 0 and features > 0.
  explicit Embedding(const plan::Embedding& spec) : spec_(spec) {}

  std::string_view kind() const override { return "embedding"; }
  /// Requires vectors of token numbers, so it is the first layer of a model.
  Expected<Shape> set_input(const Shape& input) override {
    if (input.rank() != 1)
      return Error{concat("got samples of shape ", input,
                          " and needs vectors of token numbers; make it the first layer")};
    tokens_ = input[0];
    return Shape{tokens_, spec_.features};
  }
  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", Shape{spec_.vocabulary, spec_.features}, spec_.init, spec_.features,
             spec_.features, 0, spec_.deviation}};
  }
  bool backward_reads_output() const override { return false; }
  bool splits_backward() const override { return true; }
  void forward(const ForwardArgs& args) const override {
    args.on.embedding_forward(args.y, args.x, args.weights[0], shape(args.batch));
  }
  /// dx, if requested, is zero: tokens do not depend on parameters.
  void backward(const BackwardArgs& args) const override {
    if (!args.gradients.empty())
      args.on.embedding_backward(args.gradients[0], args.dy, args.x, shape(args.batch));
    if (args.dx)
      args.on.zero(args.dx, static_cast<std::size_t>(args.batch * tokens_) * sizeof(float));
  }

 private:
  kernels::EmbeddingShape shape(std::int64_t batch) const {
    return {batch * tokens_, spec_.vocabulary, spec_.features};
  }

  plan::Embedding spec_;
  std::int64_t tokens_ = 0;  // T
};

}  // namespace leeway
