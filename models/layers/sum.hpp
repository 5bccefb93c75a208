#pragma once
// Sum: y = a + b, at the end of a residual block. The pass itself adds, because this is the only
// layer with two inputs.
#include "core/check.hpp"
#include "models/layer.hpp"

namespace leeway {

class Sum final : public Layer {
 public:
  std::string_view kind() const override { return "sum"; }
  Expected<Shape> set_input(const Shape& input) override {
    count_ = input.count();
    return input;
  }
  bool in_place() const override { return true; }
  bool backward_reads_output() const override { return false; }
  std::int64_t flops() const override { return count_; }
  void forward(const ForwardArgs&) const override { LW_CHECK(false, "LayerRunner adds"); }
  void backward(const BackwardArgs&) const override { LW_CHECK(false, "LayerRunner adds"); }

 private:
  std::int64_t count_ = 0;
};

}  // namespace leeway
