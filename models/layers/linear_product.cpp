#include "models/layers/linear_product.hpp"

namespace leeway::linear_product {
namespace {

template <class Args>
const std::byte* rounded_weights(const Args& args, const kernels::LinearShape& shape) {
  return args.packed.get(0, args.on.linear_half_form(shape), [&](std::byte* out) {
    args.on.linear_half_pack(out, args.weights[0], shape);
  });
}

}  // namespace

std::size_t scratch_bytes(Executor& on, const kernels::LinearShape& shape) {
  return is_half(shape.precision) ? on.linear_half_scratch_bytes(shape) : 0;
}

void forward(const ForwardArgs& args, ParameterView bias, const kernels::LinearShape& shape) {
  if (!is_half(shape.precision))
    return args.on.linear_forward(args.y, args.x, args.weights[0], bias, shape);
  args.on.linear_half_forward(args.y, args.x, rounded_weights(args, shape),
                              bias.empty() ? nullptr : bias.front().data, args.scratch, shape);
}

void backward(const BackwardArgs& args, GradientView dbias, const kernels::LinearShape& shape) {
  const GradientView dweight = args.gradients.empty() ? GradientView{} : args.gradients[0];
  if (!is_half(shape.precision))
    return args.on.linear_backward(args.dx, dweight, dbias, args.dy, args.x, args.weights[0],
                                   shape);
  args.on.linear_half_backward(args.dx, dweight, dbias.empty() ? nullptr : dbias.front().data,
                               args.dy, args.x, args.dx ? rounded_weights(args, shape) : nullptr,
                               args.scratch, shape);
}

}  // namespace leeway::linear_product
