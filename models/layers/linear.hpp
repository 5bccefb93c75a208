#pragma once
// Linear: y = x W^T + b for samples that are vectors; "weight" is (O, I), "bias" (O), as in
// PyTorch.
#include "models/layer.hpp"

namespace leeway {

class Linear final : public Layer {
 public:
  /// Requires outputs > 0.
  Linear(std::int64_t outputs, plan::Init init) : outputs_(outputs), init_(init) {}

  std::string_view kind() const override { return "linear"; }
  /// Takes vectors only; the error on any other shape says to put a flatten before.
  Expected<Shape> set_input(const Shape& input) override;
  std::vector<ParameterSpec> parameters() const override;
  bool backward_reads_output() const override { return false; }
  std::int64_t flops() const override { return 2 * inputs_ * outputs_; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  std::int64_t inputs_ = 0;
  std::int64_t outputs_;
  plan::Init init_;
};

}  // namespace leeway
