#pragma once
// Attention: causal multi-head attention. The input (T, 3 D) holds each token's query, key and
// value side by side, D features each, as one linear layer writes them; the output is (T, D).
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Attention final : public Layer {
 public:
  /// Requires heads > 0.
  explicit Attention(const plan::Attention& spec) : heads_(spec.heads) {}

  std::string_view kind() const override { return "attention"; }
  /// Requires sequences with 3 D features, and a number of heads that divides D.
  Expected<Shape> set_input(const Shape& input) override;
  std::size_t kept_bytes(std::int64_t batch) const override {
    return static_cast<std::size_t>(batch * heads_ * tokens_) * sizeof(float);
  }
  std::size_t scratch_bytes(Executor& on, std::int64_t batch, bool) const override {
    return on.attention_scratch_bytes(shape(batch));
  }
  std::int64_t flops() const override { return shape(1).flops(); }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::AttentionShape shape(std::int64_t batch) const {
    return {batch, tokens_, heads_, features_};
  }

  std::int64_t heads_;                      // H
  std::int64_t tokens_ = 0, features_ = 0;  // T, D
};

}  // namespace leeway
