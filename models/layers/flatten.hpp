#pragma once
// Flatten: turns samples of any shape into vectors, in the order of their shape. Images are stored
// channels last and flattened channels first, so they are transposed; other samples are views.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Flatten final : public Layer {
 public:
  std::string_view kind() const override { return "flatten"; }
  Expected<Shape> set_input(const Shape& input) override {
    if (input.rank() == 3) {
      channels_ = input[0];
      pixels_ = input[1] * input[2];
    }
    return Shape{input.count()};
  }
  bool is_view() const override { return channels_ == 1 || pixels_ == 1; }
  bool backward_reads_output() const override { return false; }
  void forward(const ForwardArgs& args) const override {
    args.on.to_channels_first(args.y, args.x, args.batch, channels_, pixels_);
  }
  void backward(const BackwardArgs& args) const override {
    if (args.dx) args.on.to_channels_last(args.dx, args.dy, args.batch, channels_, pixels_);
  }

 private:
  std::int64_t channels_ = 1;
  std::int64_t pixels_ = 1;
};

}  // namespace leeway
