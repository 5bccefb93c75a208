#include "models/layers/activation.hpp"

#include "kernels/executor.hpp"

namespace leeway {

void Relu::forward(const ForwardArgs& args) const {
  args.on.relu_forward(args.y, args.x, args.batch * count_);
}

void Relu::backward(const BackwardArgs& args) const {
  if (args.dx) args.on.relu_backward(args.dx, args.dy, args.y, args.batch * count_);
}

std::string_view ActivationLayer::kind() const {
  switch (kind_) {
    case kernels::Activation::gelu:
      return "gelu";
    case kernels::Activation::tanh:
      return "tanh";
    case kernels::Activation::sigmoid:
      return "sigmoid";
  }
  return "?";
}

void ActivationLayer::forward(const ForwardArgs& args) const {
  args.on.activation_forward(kind_, args.y, args.x, args.batch * count_);
}

void ActivationLayer::backward(const BackwardArgs& args) const {
  if (args.dx)
    args.on.activation_backward(kind_, args.dx, args.dy, in_place() ? args.y : args.x,
                                args.batch * count_);
}

}  // namespace leeway
