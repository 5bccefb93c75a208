#include <type_traits>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/pool2d_formula.hpp"
#include "kernels/shape_checks.hpp"

namespace leeway::kernels::cuda {

namespace {

/// N neighbouring channels of a pixel, which one thread computes together.
template <int N>
struct alignas(N * sizeof(float)) Channels {
  float of[N];
};
template <int N>
struct alignas(N) Places {
  std::uint8_t of[N];
};

/// A shape and the extents of y, for the device. Channels count in units of `unit`.
struct Extents : Pool2dShape {
  std::int64_t oh_count, ow_count;
  Extents(const Pool2dShape& s, std::int64_t unit)
      : Pool2dShape(s), oh_count(s.out_height()), ow_count(s.out_width()) {
    channels /= unit;
  }
  std::int64_t in_count() const { return batch * height * width * channels; }
  std::int64_t out_count() const { return batch * oh_count * ow_count * channels; }
};

/// The window of element i of y (B, OH, OW, C). Inside the image it covers rows [top, bottom) and
/// columns [left, right), at `pixels` + row * row_floats + column * C.
template <class T>
struct Window {
  std::int64_t first_row, first_column;  // of the whole window
  std::int64_t top, bottom, left, right;
  const T* pixels;

  __device__ Window(std::int64_t i, const T* x, const Extents& s) {
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

template <int N>
void max_forward(On on, Channels<N>* y, Places<N>* from, const Channels<N>* x, const Extents& s) {
  for_each(on, s.out_count(), [=] __device__(std::int64_t i) {
    const Window window(i, x, s);
    const auto place_of = [&](std::int64_t h, std::int64_t w) {
      return static_cast<std::int32_t>((h - window.first_row) * s.kernel + w - window.first_column);
    };
    Channels<N> best = window.pixels[(window.top * s.width + window.left) * s.channels];
    std::int32_t place[N];
    for (int n = 0; n < N; ++n) place[n] = place_of(window.top, window.left);
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const Channels<N> next = window.pixels[(h * s.width + w) * s.channels];
        for (int n = 0; n < N; ++n) keep_larger(best.of[n], place[n], next.of[n], place_of(h, w));
      }
    y[i] = best;
    if (!from) return;
    Places<N> places;
    for (int n = 0; n < N; ++n) places.of[n] = static_cast<std::uint8_t>(place[n]);
    from[i] = places;
  });
}

template <int N>
void max_backward(On on, Channels<N>* dx, const Channels<N>* dy, const Places<N>* from,
                  const Extents& s) {
  for_each(on, s.in_count(), [=] __device__(std::int64_t i) {
    Channels<N> sum{};
    for_each_window_of(i, s, [&](std::int64_t out, std::int64_t place) {
      const Places<N> places = from[out];
      const Channels<N> g = dy[out];
      for (int n = 0; n < N; ++n)
        if (places.of[n] == place) sum.of[n] += g.of[n];
    });
    dx[i] = sum;
  });
}

template <int N>
void avg_forward(On on, Channels<N>* y, const Channels<N>* x, const Extents& s) {
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  for_each(on, s.out_count(), [=] __device__(std::int64_t i) {
    const Window window(i, x, s);
    Channels<N> sum{};
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const Channels<N> next = window.pixels[(h * s.width + w) * s.channels];
        for (int n = 0; n < N; ++n) sum.of[n] += next.of[n];
      }
    for (int n = 0; n < N; ++n) sum.of[n] *= share;
    y[i] = sum;
  });
}

template <int N>
void avg_backward(On on, Channels<N>* dx, const Channels<N>* dy, const Extents& s) {
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  for_each(on, s.in_count(), [=] __device__(std::int64_t i) {
    Channels<N> sum{};
    for_each_window_of(i, s, [&](std::int64_t out, std::int64_t) {
      const Channels<N> g = dy[out];
      for (int n = 0; n < N; ++n) sum.of[n] += g.of[n] * share;
    });
    dx[i] = sum;
  });
}

/// Calls f(constant N): four channels at a time if they divide by four and the arrays are aligned.
template <class F, class... Pointers>
void with_unit(const Pool2dShape& shape, F f, Pointers... arrays) {
  if (shape.channels % 4 == 0 && aligned16(arrays...))
    f(std::integral_constant<int, 4>{});
  else
    f(std::integral_constant<int, 1>{});
}

template <int N>
Channels<N>* channels(float* array) {
  return reinterpret_cast<Channels<N>*>(array);
}
template <int N>
const Channels<N>* channels(const float* array) {
  return reinterpret_cast<const Channels<N>*>(array);
}

}  // namespace

void max_pool2d_forward(On on, float* y, std::uint8_t* from, const float* x,
                        const Pool2dShape& shape) {
  check_max(shape);
  with_unit(
      shape,
      [&](auto n) {
        constexpr int N = decltype(n)::value;
        max_forward<N>(on, channels<N>(y), reinterpret_cast<Places<N>*>(from), channels<N>(x),
                       Extents(shape, N));
      },
      y, from, x);
}

void max_pool2d_backward(On on, float* dx, const float* dy, const std::uint8_t* from,
                         const Pool2dShape& shape) {
  check_max(shape);
  with_unit(
      shape,
      [&](auto n) {
        constexpr int N = decltype(n)::value;
        max_backward<N>(on, channels<N>(dx), channels<N>(dy),
                        reinterpret_cast<const Places<N>*>(from), Extents(shape, N));
      },
      dx, dy, from);
}

void avg_pool2d_forward(On on, float* y, const float* x, const Pool2dShape& shape) {
  check(shape);
  with_unit(
      shape,
      [&](auto n) {
        constexpr int N = decltype(n)::value;
        avg_forward<N>(on, channels<N>(y), channels<N>(x), Extents(shape, N));
      },
      y, x);
}

void avg_pool2d_backward(On on, float* dx, const float* dy, const Pool2dShape& shape) {
  check(shape);
  with_unit(
      shape,
      [&](auto n) {
        constexpr int N = decltype(n)::value;
        avg_backward<N>(on, channels<N>(dx), channels<N>(dy), Extents(shape, N));
      },
      dx, dy);
}

}  // namespace leeway::kernels::cuda
