#pragma once
// Attention: causal, of several heads. A sample (T, 3 D) holds each token's queries, keys and
// values side by side, D features each, as a linear layer before it writes them; (T, D) comes out.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Attention final : public Layer {
 public:
  /// Requires heads > 0.
  explicit Attention(const plan::Attention& spec) : heads_(spec.heads) {}

  std::string_view kind() const override { return "attention"; }
  /// Takes sequences whose features divide into queries, keys and values, and those into heads.
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
