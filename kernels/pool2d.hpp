#pragma once
// pool2d: the maximum or the mean of each window of an image, for each channel.
//
// Images are channels last: x (B, H, W, C), y (B, OH, OW, C). Padding counts as minus infinity for
// max_pool2d and as zeros for avg_pool2d, like PyTorch's default.
#include <cstdint>

namespace leeway::kernels {

struct Pool2dShape {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;  // B, C, H, W
  std::int64_t kernel = 2, stride = 2, padding = 0;             // padding <= kernel / 2

  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  bool operator==(const Pool2dShape&) const = default;
};

/// y = maximum of each window, NaN if the window has one. `from` (B, OH, OW, C), unless null = its
/// place in the window, row * K + column, for backward; the first place among equals. Requires
/// kernel <= 15.
void max_pool2d_forward(float* y, std::uint8_t* from, const float* x, const Pool2dShape& shape);
/// dx = dy at the places in `from`, summed where windows overlap.
void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                         const Pool2dShape& shape);

/// y = mean of each window.
void avg_pool2d_forward(float* y, const float* x, const Pool2dShape& shape);
/// dx = dy / K^2 at every place of the window, summed where windows overlap.
void avg_pool2d_backward(float* dx, const float* dy, const Pool2dShape& shape);

}  // namespace leeway::kernels
