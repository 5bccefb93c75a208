#include "models/layers/linear.hpp"

#include "core/text.hpp"
#include "models/layers/linear_product.hpp"

namespace leeway {

Expected<Shape> Linear::set_input(const Shape& input) {
  if (input.rank() == 2) {
    rows_ = input[0];
    inputs_ = input[1];
    return Shape{rows_, outputs_};
  }
  if (input.rank() != 1)
    return Error{concat("got samples of shape ", input,
                        " and needs vectors; put a flatten layer before it")};
  inputs_ = input[0];
  return Shape{outputs_};
}

std::vector<ParameterSpec> Linear::parameters() const {
  std::vector<ParameterSpec> specs{
      {"weight", Shape{outputs_, inputs_}, spec_.init, inputs_, outputs_, 0, spec_.deviation}};
  if (spec_.bias) specs.push_back({"bias", Shape{outputs_}, plan::Init::zeros, inputs_, outputs_});
  return specs;
}

std::size_t Linear::scratch_bytes(Executor& on, std::int64_t batch, bool) const {
  return linear_product::scratch_bytes(on, shape(batch));
}

void Linear::forward(const ForwardArgs& args) const {
  linear_product::forward(args, spec_.bias ? args.weights[1] : ParameterView{}, shape(args.batch));
}

void Linear::backward(const BackwardArgs& args) const {
  const bool wants_bias = spec_.bias && !args.gradients.empty();
  linear_product::backward(args, wants_bias ? args.gradients[1] : GradientView{},
                           shape(args.batch));
}

}  // namespace leeway
