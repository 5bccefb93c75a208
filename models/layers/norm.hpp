#pragma once
// BatchNorm and LayerNorm: normalise activations to mean 0 and variance 1, then scale by "weight"
// and shift by "bias", as in PyTorch.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

/// Normalises each channel of images or vectors over the batch. Training uses the batch's mean and
/// variance. Evaluation uses "running_mean" and "running_var", which the shards average over the
/// batches of all workers.
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const plan::BatchNorm& spec) : spec_(spec) {}

  std::string_view kind() const override { return "batch_norm"; }
  Expected<Shape> set_input(const Shape& input) override;
  std::vector<ParameterSpec> parameters() const override;
  bool backward_reads_output() const override { return false; }
  std::size_t kept_bytes(std::int64_t) const override;
  std::int64_t flops() const override { return 4 * rows_ * channels_; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::NormShape shape(std::int64_t batch) const {
    return {batch * rows_, channels_, static_cast<float>(spec_.epsilon)};
  }

  plan::BatchNorm spec_;
  std::int64_t rows_ = 1;      // H * W
  std::int64_t channels_ = 0;  // C
};

/// Normalises each row of features of vectors (D) or sequences (T, D).
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(const plan::LayerNorm& spec) : spec_(spec) {}

  std::string_view kind() const override { return "layer_norm"; }
  Expected<Shape> set_input(const Shape& input) override;
  std::vector<ParameterSpec> parameters() const override;
  bool backward_reads_output() const override { return false; }
  std::size_t kept_bytes(std::int64_t batch) const override;
  std::int64_t flops() const override { return 6 * rows_ * features_; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::NormShape shape(std::int64_t batch) const {
    return {batch * rows_, features_, static_cast<float>(spec_.epsilon)};
  }

  plan::LayerNorm spec_;
  std::int64_t rows_ = 1;      // T
  std::int64_t features_ = 0;  // D
};

}  // namespace leeway
