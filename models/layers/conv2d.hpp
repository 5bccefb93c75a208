#pragma once
// Conv2d: convolution of images; "weight" is (O, C / G, K, K), "bias" (O), as in PyTorch.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Conv2d final : public Layer {
 public:
  /// Requires a validated plan: outputs, kernel, stride and groups at least 1, groups dividing
  /// outputs.
  Conv2d(const plan::Conv2d& spec, Precision precision) : spec_(spec), precision_(precision) {}

  std::string_view kind() const override { return "conv2d"; }
  /// Requires images at least as large as the kernel, with a number of channels that the groups
  /// divide.
  Expected<Shape> set_input(const Shape& input) override;
  std::vector<ParameterSpec> parameters() const override;
  bool backward_reads_output() const override { return false; }
  bool splits_backward() const override { return true; }
  std::size_t scratch_bytes(Executor& on, std::int64_t batch, bool training) const override {
    // In fp32 on the CPU only backward needs scratch memory.
    if (!training && !is_half(precision_) && on.device().kind != Device::Kind::cuda) return 0;
    return on.conv2d_scratch_bytes(shape(batch));
  }
  std::optional<Precision> precision() const override { return precision_; }
  std::int64_t flops() const override { return shape(1).flops(); }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::Conv2dShape shape(std::int64_t batch) const;
  const std::byte* weights(Executor& on, PackedWeights& packed, const ParameterView& view,
                           const kernels::Conv2dShape& of, kernels::ConvPass pass) const;

  plan::Conv2d spec_;
  Precision precision_;
  std::int64_t channels_ = 0, height_ = 0, width_ = 0;
};

}  // namespace leeway
