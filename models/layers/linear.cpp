#include "models/layers/linear.hpp"

#include "core/text.hpp"
#include "kernels/linear.hpp"

namespace leeway {

Expected<Shape> Linear::set_input(const Shape& input) {
  if (input.rank() != 1)
    return Error{concat("got samples of shape ", input,
                        " and needs vectors; put a flatten layer before it")};
  inputs_ = input[0];
  return Shape{outputs_};
}

std::vector<ParameterSpec> Linear::parameters() const {
  return {{"weight", Shape{outputs_, inputs_}, init_, inputs_, outputs_},
          {"bias", Shape{outputs_}, plan::Init::zeros, inputs_, outputs_}};
}

void Linear::forward(const ForwardArgs& args) const {
  kernels::linear_forward(args.y, args.x, args.weights[0], args.weights[1],
                          {args.batch, inputs_, outputs_});
}

void Linear::backward(const BackwardArgs& args) const {
  kernels::linear_backward(args.dx, args.gradients[0], args.gradients[1], args.dy, args.x,
                           args.weights[0], {args.batch, inputs_, outputs_});
}

}  // namespace leeway
