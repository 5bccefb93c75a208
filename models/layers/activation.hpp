#pragma once
// Relu, Gelu, Tanh and Sigmoid: elementwise functions, for samples of any shape.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Elementwise : public Layer {
 public:
  Expected<Shape> set_input(const Shape& input) final {
    count_ = input.count();
    return input;
  }
  std::int64_t flops() const final { return count_; }

 protected:
  std::int64_t count_ = 0;  // elements of one sample
};

/// y = max(x, 0), in place.
class Relu final : public Elementwise {
 public:
  std::string_view kind() const override { return "relu"; }
  bool in_place() const override { return true; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;
};

/// y = f(x); in place if backward needs only y.
class ActivationLayer final : public Elementwise {
 public:
  explicit ActivationLayer(kernels::Activation kind) : kind_(kind) {}
  std::string_view kind() const override;
  bool in_place() const override { return kind_ != kernels::Activation::gelu; }
  bool backward_reads_output() const override { return in_place(); }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  kernels::Activation kind_;
};

}  // namespace leeway
