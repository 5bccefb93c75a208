#include "models/layers/relu.hpp"

#include "kernels/relu.hpp"

namespace leeway {

Expected<Shape> Relu::set_input(const Shape& input) {
  count_ = input.count();
  return input;
}

void Relu::forward(const ForwardArgs& args) const {
  kernels::relu_forward(args.y, args.x, args.batch * count_);
}

void Relu::backward(const BackwardArgs& args) const {
  if (args.dx) kernels::relu_backward(args.dx, args.dy, args.y, args.batch * count_);
}

}  // namespace leeway
