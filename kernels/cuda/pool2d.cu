#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/pool2d_formula.hpp"
#include "kernels/shape_checks.hpp"

namespace leeway::kernels::cuda {

namespace {

/// A shape and the extents of y, for the device.
struct Extents : Pool2dShape {
  std::int64_t oh_count, ow_count;
  explicit Extents(const Pool2dShape& s)
      : Pool2dShape(s), oh_count(s.out_height()), ow_count(s.out_width()) {}
};

/// The window of element i of y (B, OH, OW, C). Inside the image it covers rows [top, bottom) and
/// columns [left, right), at `pixels` + row * row_floats + column * C.
struct Window {
  std::int64_t first_row, first_column;  // of the whole window
  std::int64_t top, bottom, left, right;
  const float* pixels;

  __device__ Window(std::int64_t i, const float* x, const Extents& s) {
    const auto [pixel, channel] = divide(i, s.channels);
    const auto [out_row, ow] = divide(pixel, s.ow_count);
    const auto [image, oh] = divide(out_row, s.oh_count);
    first_row = oh * s.stride - s.padding;
    first_column = ow * s.stride - s.padding;
    top = first_row < 0 ? 0 : first_row;
    left = first_column < 0 ? 0 : first_column;
    bottom = min(first_row + s.kernel, s.height);
    right = min(first_column + s.kernel, s.width);
    pixels = x + image * s.height * s.width * s.channels + channel;
  }
};

/// Calls f(element of y, place in its window) for all windows that contain element i of x
/// (B, H, W, C), row by row.
template <class F>
__device__ void for_each_window_of(std::int64_t i, const Extents& s, F f) {
  const auto [pixel, channel] = divide(i, s.channels);
  const auto [image_row, w] = divide(pixel, s.width);
  const auto [image, h] = divide(image_row, s.height);
  // A window begins at most kernel - 1 pixels before the pixel.
  const std::int64_t row = h + s.padding, column = w + s.padding;
  const std::int64_t skipped_rows = row - s.kernel + 1, skipped_columns = column - s.kernel + 1;
  const std::int64_t top =
      skipped_rows <= 0 ? 0 : divide(skipped_rows + s.stride - 1, s.stride).quotient;
  const std::int64_t left =
      skipped_columns <= 0 ? 0 : divide(skipped_columns + s.stride - 1, s.stride).quotient;
  for (std::int64_t oh = top; oh < s.oh_count && oh * s.stride <= row; ++oh)
    for (std::int64_t ow = left; ow < s.ow_count && ow * s.stride <= column; ++ow)
      f(((image * s.oh_count + oh) * s.ow_count + ow) * s.channels + channel,
        (row - oh * s.stride) * s.kernel + column - ow * s.stride);
}

std::int64_t out_count(const Pool2dShape& s) {
  return s.batch * s.out_height() * s.out_width() * s.channels;
}
std::int64_t in_count(const Pool2dShape& s) {
  return s.batch * s.height * s.width * s.channels;
}

}  // namespace

void max_pool2d_forward(On on, float* y, std::uint8_t* from, const float* x,
                        const Pool2dShape& shape) {
  check_max(shape);
  const Extents s(shape);
  for_each(on, out_count(s), [=] __device__(std::int64_t i) {
    const Window window(i, x, s);
    const auto place_of = [&](std::int64_t h, std::int64_t w) {
      return static_cast<std::int32_t>((h - window.first_row) * s.kernel + w - window.first_column);
    };
    float best = window.pixels[(window.top * s.width + window.left) * s.channels];
    std::int32_t place = place_of(window.top, window.left);
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w)
        keep_larger(best, place, window.pixels[(h * s.width + w) * s.channels], place_of(h, w));
    y[i] = best;
    if (from) from[i] = static_cast<std::uint8_t>(place);
  });
}

void max_pool2d_backward(On on, float* dx, const float* dy, const std::uint8_t* from,
                         const Pool2dShape& shape) {
  check_max(shape);
  const Extents s(shape);
  for_each(on, in_count(s), [=] __device__(std::int64_t i) {
    float sum = 0;
    for_each_window_of(i, s, [&](std::int64_t out, std::int64_t place) {
      if (from[out] == place) sum += dy[out];
    });
    dx[i] = sum;
  });
}

void avg_pool2d_forward(On on, float* y, const float* x, const Pool2dShape& shape) {
  check(shape);
  const Extents s(shape);
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  for_each(on, out_count(s), [=] __device__(std::int64_t i) {
    const Window window(i, x, s);
    float sum = 0;
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w)
        sum += window.pixels[(h * s.width + w) * s.channels];
    y[i] = sum * share;
  });
}

void avg_pool2d_backward(On on, float* dx, const float* dy, const Pool2dShape& shape) {
  check(shape);
  const Extents s(shape);
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  for_each(on, in_count(s), [=] __device__(std::int64_t i) {
    float sum = 0;
    for_each_window_of(i, s, [&](std::int64_t out, std::int64_t) { sum += dy[out] * share; });
    dx[i] = sum;
  });
}

}  // namespace leeway::kernels::cuda
