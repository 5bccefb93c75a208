#include "models/layers/conv2d.hpp"

#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/layers/image.hpp"

namespace leeway {

namespace {

constexpr std::int64_t kMaxWeights = std::int64_t{1} << 32;  // 16 GiB

}  // namespace

kernels::Conv2dShape Conv2d::shape(std::int64_t batch) const {
  return {batch,        channels_,    height_,       width_,       spec_.outputs,
          spec_.kernel, spec_.stride, spec_.padding, spec_.groups, precision_};
}

Expected<Shape> Conv2d::set_input(const Shape& input) {
  if (const auto fits = check_image(input, spec_.kernel, spec_.padding); !fits) return fits.error();
  if (input[0] % spec_.groups != 0)
    return Error{concat("got samples of shape ", input, ", whose ", input[0],
                        " channels do not divide into ", spec_.groups,
                        " groups; choose groups that divide both channels and outputs")};
  channels_ = input[0];
  height_ = input[1];
  width_ = input[2];
  if (shape(1).weight_count() > kMaxWeights)
    return Error{concat("got samples of shape ", input, ", for which its ", spec_.outputs,
                        " outputs need ", shape(1).weight_count(), " weights, more than ",
                        kMaxWeights, "; give fewer outputs or a smaller kernel")};
  const auto of = shape(1);
  return Shape{of.outputs, of.out_height(), of.out_width()};
}

std::vector<ParameterSpec> Conv2d::parameters() const {
  const std::int64_t k = spec_.kernel, groups = spec_.groups, outputs = spec_.outputs;
  const std::int64_t fan_in = channels_ / groups * k * k, fan_out = outputs / groups * k * k;
  std::vector<ParameterSpec> specs{
      {"weight", Shape{outputs, channels_ / groups, k, k}, spec_.init, fan_in, fan_out}};
  if (spec_.bias) specs.push_back({"bias", Shape{outputs}, plan::Init::zeros, fan_in, fan_out});
  return specs;
}

const std::byte* Conv2d::weights(Executor& on, PackedWeights& packed, const ParameterView& view,
                                 const kernels::Conv2dShape& of, kernels::ConvPass pass) const {
  return packed.get(0, on.conv2d_form(of, pass),
                    [&](std::byte* out) { on.conv2d_pack(out, view, of, pass); });
}

void Conv2d::forward(const ForwardArgs& args) const {
  if (args.batch == 0) return;
  const auto of = shape(args.batch);
  args.on.conv2d_forward(
      args.y, args.x,
      weights(args.on, args.packed, args.weights[0], of, kernels::ConvPass::forward),
      spec_.bias ? args.weights[1].front().data : nullptr, args.scratch, of);
}

void Conv2d::backward(const BackwardArgs& args) const {
  const auto of = shape(args.batch);
  const bool reads_weights = args.dx && args.batch > 0;
  const bool wants_gradients = !args.gradients.empty();
  args.on.conv2d_backward(
      args.dx, wants_gradients ? args.gradients[0] : GradientView{},
      wants_gradients && spec_.bias ? args.gradients[1].front().data : nullptr, args.dy, args.x,
      reads_weights
          ? weights(args.on, args.packed, args.weights[0], of, kernels::ConvPass::backward)
          : nullptr,
      args.scratch, of);
}

}  // namespace leeway
