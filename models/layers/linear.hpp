#pragma once
// Linear: y = x W^T + b over the last axis of a sample; "weight" is (O, I), "bias" (O), as in
// PyTorch.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Linear final : public Layer {
 public:
  /// Requires outputs > 0.
  Linear(const plan::Linear& spec, Precision precision)
      : spec_(spec), precision_(precision), outputs_(spec.outputs) {}

  std::string_view kind() const override { return "linear"; }
  /// Requires vectors (I) or sequences (T, I); the error for images suggests a flatten layer.
  Expected<Shape> set_input(const Shape& input) override;
  std::vector<ParameterSpec> parameters() const override;
  bool backward_reads_output() const override { return false; }
  bool splits_backward() const override { return true; }
  std::size_t scratch_bytes(Executor& on, std::int64_t batch, bool) const override;
  std::optional<Precision> precision() const override { return precision_; }
  std::int64_t flops() const override { return 2 * rows_ * inputs_ * outputs_; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::LinearShape shape(std::int64_t batch) const {
    return {batch * rows_, inputs_, outputs_, precision_};
  }

  plan::Linear spec_;
  Precision precision_;
  std::int64_t rows_ = 1;  // T
  std::int64_t inputs_ = 0;
  std::int64_t outputs_;
};

}  // namespace leeway
