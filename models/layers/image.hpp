#pragma once
// check_image: validates the input of layers that slide a window over images.
#include "core/expected.hpp"
#include "core/text.hpp"
#include "tensor/shape.hpp"

namespace leeway {

/// Checks that `input` is an image (C, H, W) into which a window of `kernel` fits, with `padding`
/// on all sides.
inline Status check_image(const Shape& input, std::int64_t kernel, std::int64_t padding) {
  if (input.rank() != 3)
    return Error{concat("got samples of shape ", input,
                        " and needs images, channels x height x width; put it before any flatten")};
  if (input[1] + 2 * padding < kernel || input[2] + 2 * padding < kernel)
    return Error{concat("got samples of shape ", input, " and needs images of at least ",
                        kernel - 2 * padding, "x", kernel - 2 * padding,
                        "; give it a smaller kernel or more padding")};
  return {};
}

}  // namespace leeway
