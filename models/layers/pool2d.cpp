#include "models/layers/pool2d.hpp"

#include "kernels/executor.hpp"
#include "models/layers/image.hpp"

namespace leeway {

Expected<Shape> Pool2d::set_input(const Shape& input) {
  const bool whole = kernel_ == 0;
  if (const auto fits = check_image(input, whole ? 1 : kernel_, padding_); !fits)
    return fits.error();
  if (whole && input[1] != input[2])
    return Error{concat("got samples of shape ", input,
                        " and pools whole images only if they are square; give it a kernel")};
  shape_ = {.channels = input[0],
            .height = input[1],
            .width = input[2],
            .kernel = whole ? input[1] : kernel_,
            .stride = whole ? input[1] : stride_,
            .padding = padding_};
  const Shape output{input[0], shape_.out_height(), shape_.out_width()};
  outputs_ = output.count();
  return output;
}

void MaxPool2d::forward(const ForwardArgs& args) const {
  args.on.max_pool2d_forward(args.y,
                             args.training ? reinterpret_cast<std::uint8_t*>(args.kept) : nullptr,
                             args.x, shape(args.batch));
}

void MaxPool2d::backward(const BackwardArgs& args) const {
  if (args.dx)
    args.on.max_pool2d_backward(args.dx, args.dy, reinterpret_cast<const std::uint8_t*>(args.kept),
                                shape(args.batch));
}

void AvgPool2d::forward(const ForwardArgs& args) const {
  args.on.avg_pool2d_forward(args.y, args.x, shape(args.batch));
}

void AvgPool2d::backward(const BackwardArgs& args) const {
  if (args.dx) args.on.avg_pool2d_backward(args.dx, args.dy, shape(args.batch));
}

}  // namespace leeway
