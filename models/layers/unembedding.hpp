#pragma once
// Unembedding: the scalar products of each token (T, D), or of one vector (D), with every row of
// the embedding's table (V, D), giving logits (T, V) or (V). The weights are tied: the table is
// both input and output embedding (Press and Wolf 2017), and both uses train it.
#include "core/text.hpp"
#include "models/layers/linear_product.hpp"

namespace leeway {

class Unembedding final : public Layer {
 public:
  /// `table`: the shape of the embedding's weight, (V, D).
  Unembedding(const Shape& table, Precision precision)
      : vocabulary_(table[0]), features_(table[1]), precision_(precision) {}

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
  std::size_t scratch_bytes(Executor& on, std::int64_t batch, bool) const override {
    return linear_product::scratch_bytes(on, shape(batch));
  }
  std::optional<Precision> precision() const override { return precision_; }
  std::int64_t flops() const override { return 2 * rows_ * features_ * vocabulary_; }
  void forward(const ForwardArgs& args) const override {
    linear_product::forward(args, {}, shape(args.batch));
  }
  void backward(const BackwardArgs& args) const override {
    linear_product::backward(args, {}, shape(args.batch));
  }

 private:
  kernels::LinearShape shape(std::int64_t batch) const {
    return {batch * rows_, features_, vocabulary_, precision_};
  }

  std::int64_t vocabulary_, features_;  // V, D
  Precision precision_;
  std::int64_t rows_ = 1;  // T
};

}  // namespace leeway
