#pragma once
// Relu: y = max(x, 0), for samples of any shape, in place.
#include "models/layer.hpp"

namespace leeway {

class Relu final : public Layer {
 public:
  std::string_view kind() const override { return "relu"; }
  Expected<Shape> set_input(const Shape& input) override;
  bool in_place() const override { return true; }
  std::int64_t flops() const override { return count_; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;

 private:
  std::int64_t count_ = 0;  // numbers of one sample
};

}  // namespace leeway
