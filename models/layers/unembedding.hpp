#pragma once
// Unembedding: the scalar products of each token (T, D), or of one vector (D), with every row of
// the embedding's table (V, D), giving logits (T, V) or (V). The weights are tied: the table is
// both input and output embedding (Press and Wolf 2017), and both uses train it.
#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Unembedding final : public Layer {
 public:
  /// `table`: the shape of the embedding's weight, (V, D).
  explicit Unembedding(const Shape& table) : vocabulary_(table[0]), features_(table[1]) {}

  std::string_view kind() const override { return "unembedding"; }
  Expected<Shape> set_input(const Shape& input) override {
    if (input.rank() > 2 || input[input.rank() - 1] != features_)
      return Error{concat("got samples of shape ", input, " and needs rows of ", features_,
                          " features, like the embedding; put linear, outputs = ", features_,
                          " before it")};
    rows_ = input.count() / features_;
    return input.rank() == 1 ? Shape{vocabulary_} : Shape{rows_, vocabulary_};
  }
  bool borrows_embedding() const override { return true; }
  bool backward_reads_output() const override { return false; }
  bool splits_backward() const override { return true; }
  std::int64_t flops() const override { return 2 * rows_ * features_ * vocabulary_; }
  void forward(const ForwardArgs& args) const override {
    args.on.linear_forward(args.y, args.x, args.weights[0], {}, shape(args.batch));
  }
  void backward(const BackwardArgs& args) const override {
    args.on.linear_backward(args.dx, args.gradients.empty() ? GradientView{} : args.gradients[0],
                            {}, args.dy, args.x, args.weights[0], shape(args.batch));
  }

 private:
  kernels::LinearShape shape(std::int64_t batch) const {
    return {batch * rows_, features_, vocabulary_};
  }

  std::int64_t vocabulary_, features_;  // V, D
  std::int64_t rows_ = 1;               // T
};

}  // namespace leeway
