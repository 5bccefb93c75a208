#include "kernels/pool2d.hpp"

#include <algorithm>
#include <array>

#include "kernels/pool2d_formula.hpp"
#include "kernels/shape_checks.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// True if K x K windows do not overlap and have no padding: each pixel is in at most one window.
template <int K>
bool is_tiled(const Pool2dShape& s) {
  return s.kernel == K && s.stride == K && s.padding == 0;
}

/// Calls image(b) for each image and then f(first row, first column, pixel of y) for each of its
/// windows.
template <class Image, class F>
LW_INLINE void for_each_window(const Pool2dShape& s, Image image, F f) {
  const std::int64_t out_height = s.out_height(), out_width = s.out_width();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    image(b);
    for (std::int64_t oh = 0; oh < out_height; ++oh)
      for (std::int64_t ow = 0; ow < out_width; ++ow)
        f(oh * s.stride - s.padding, ow * s.stride - s.padding,
          (b * out_height + oh) * out_width + ow);
  }
}

/// Calls f(pixel of the image, place in the window) for the pixels of a window inside the image.
template <class F>
LW_INLINE void for_each_place(const Pool2dShape& s, std::int64_t top, std::int64_t left, F f) {
  const std::int64_t last_row = std::min(s.kernel, s.height - top);
  const std::int64_t last_column = std::min(s.kernel, s.width - left);
  for (std::int64_t r = std::max<std::int64_t>(0, -top); r < last_row; ++r)
    for (std::int64_t c = std::max<std::int64_t>(0, -left); c < last_column; ++c)
      f((top + r) * s.width + left + c, r * s.kernel + c);
}

/// y, from = maximum of one K x K window and its place.
template <int K>
LW_INLINE void max_of_tile(float* __restrict y, std::uint8_t* __restrict from,
                           const float* __restrict x, std::int64_t row_floats,
                           std::int64_t channels) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    float best = x[c];
    std::int32_t place = 0;
    for (int k = 1; k < K * K; ++k)
      keep_larger(best, place, x[(k / K) * row_floats + (k % K) * channels + c], k);
    y[c] = best;
    if (from) from[c] = static_cast<std::uint8_t>(place);
  }
}

template <int K>
LW_INLINE void max_of_tiles(float* y, std::uint8_t* from, const float* x, const Pool2dShape& s) {
  const std::int64_t channels = s.channels, row_floats = s.width * channels;
  const float* image = nullptr;
  for_each_window(
      s, [&](std::int64_t b) LW_INLINE_LAMBDA { image = x + b * s.height * row_floats; },
      [&](std::int64_t top, std::int64_t left, std::int64_t out) LW_INLINE_LAMBDA {
        const float* window = image + top * row_floats + left * channels;
        if (from)
          max_of_tile<K>(y + out * channels, from + out * channels, window, row_floats, channels);
        else
          max_of_tile<K>(y + out * channels, nullptr, window, row_floats, channels);
      });
}

/// The largest number of floats in a row of pixels for which max_of_rows is used.
constexpr std::int64_t kMaxRow = 1024;

bool has_few_channels(const Pool2dShape& s) {
  return s.channels < 32 && s.width * s.channels <= kMaxRow;
}

/// max_of_tiles<2> for few channels, which do not fill a vector: handles a whole row of y at once.
LW_INLINE void max_of_rows(float* __restrict y, std::uint8_t* __restrict from,
                           const float* __restrict x, const Pool2dShape& s) {
  const std::int64_t channels = s.channels, row = s.width * channels;
  const std::int64_t out_row = s.out_width() * channels;
  std::array<std::int32_t, kMaxRow> corner, places;  // of the windows of a row of y
  for (std::int64_t i = 0; i < out_row; ++i)
    corner[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(i / channels * 2 * channels + i % channels);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.out_height(); ++h) {
      const float* const top = x + (b * s.height + 2 * h) * row;
      const float* const bottom = top + row;
#pragma omp simd
      for (std::int64_t i = 0; i < out_row; ++i) {
        const std::int64_t at = corner[static_cast<std::size_t>(i)];
        float best = top[at];
        std::int32_t place = 0;
        keep_larger(best, place, top[at + channels], 1);
        keep_larger(best, place, bottom[at], 2);
        keep_larger(best, place, bottom[at + channels], 3);
        y[i] = best;
        places[static_cast<std::size_t>(i)] = place;
      }
      y += out_row;
      if (!from) continue;
      for (std::int64_t i = 0; i < out_row; ++i)
        from[i] = static_cast<std::uint8_t>(places[static_cast<std::size_t>(i)]);
      from += out_row;
    }
  }
}

LW_INLINE void max_with(float* __restrict y, std::uint8_t* __restrict from,
                        const float* __restrict x, std::int32_t x_place, std::int64_t channels) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    float best = y[c];
    std::int32_t place = from ? from[c] : 0;
    keep_larger(best, place, x[c], x_place);
    y[c] = best;
    if (from) from[c] = static_cast<std::uint8_t>(place);
  }
}

LW_INLINE void max_of_windows(float* y, std::uint8_t* from, const float* x, const Pool2dShape& s) {
  const std::int64_t channels = s.channels;
  const float* image = nullptr;
  for_each_window(
      s, [&](std::int64_t b) LW_INLINE_LAMBDA { image = x + b * s.height * s.width * channels; },
      [&](std::int64_t top, std::int64_t left, std::int64_t out) LW_INLINE_LAMBDA {
        float* best = y + out * channels;
        std::uint8_t* places = from ? from + out * channels : nullptr;
        bool first = true;
        for_each_place(s, top, left, [&](std::int64_t pixel, std::int64_t place) LW_INLINE_LAMBDA {
          const float* here = image + pixel * channels;
          if (first) {
            std::copy_n(here, channels, best);
            if (from) std::fill_n(places, channels, static_cast<std::uint8_t>(place));
          } else {
            max_with(best, places, here, static_cast<std::int32_t>(place), channels);
          }
          first = false;
        });
      });
}

/// Zeroes the pixels to the right of and below the tiles of one image.
LW_INLINE void zero_rest(float* image, const Pool2dShape& s) {
  const std::int64_t rows = s.out_height() * s.kernel, columns = s.out_width() * s.kernel;
  const std::int64_t row_floats = s.width * s.channels;
  if (columns < s.width)
    for (std::int64_t r = 0; r < rows; ++r)
      std::fill(image + r * row_floats + columns * s.channels, image + (r + 1) * row_floats, 0.0f);
  std::fill(image + rows * row_floats, image + s.height * row_floats, 0.0f);
}

/// Sets each place of each tile to value(pixel of y, place, channel).
template <int K, class Value>
LW_INLINE void fill_tiles(float* dx, const Pool2dShape& s, Value value) {
  const std::int64_t channels = s.channels, row_floats = s.width * channels;
  float* image = nullptr;
  for_each_window(
      s,
      [&](std::int64_t b) LW_INLINE_LAMBDA {
        image = dx + b * s.height * row_floats;
        zero_rest(image, s);
      },
      [&](std::int64_t top, std::int64_t left, std::int64_t out) LW_INLINE_LAMBDA {
        float* window = image + top * row_floats + left * channels;
#pragma omp simd
        for (std::int64_t c = 0; c < channels; ++c)
          for (int k = 0; k < K * K; ++k)
            window[(k / K) * row_floats + (k % K) * channels + c] = value(out, k, c);
      });
}

/// Sets each pixel to the sum of value(pixel of y, place, channel) over its windows.
template <class Value>
LW_INLINE void sum_windows(float* dx, const Pool2dShape& s, Value value) {
  const std::int64_t channels = s.channels, image_floats = s.height * s.width * channels;
  float* image = nullptr;
  for_each_window(
      s,
      [&](std::int64_t b) LW_INLINE_LAMBDA {
        image = dx + b * image_floats;
        std::fill_n(image, image_floats, 0.0f);
      },
      [&](std::int64_t top, std::int64_t left, std::int64_t out) LW_INLINE_LAMBDA {
        for_each_place(s, top, left, [&](std::int64_t pixel, std::int64_t place) LW_INLINE_LAMBDA {
          float* here = image + pixel * channels;
#pragma omp simd
          for (std::int64_t c = 0; c < channels; ++c) here[c] += value(out, place, c);
        });
      });
}

/// y = means of windows: sums, scaled in the same pass over a pixel's channels.
LW_INLINE void mean_of_windows(float* y, const float* x, const Pool2dShape& s) {
  const std::int64_t channels = s.channels;
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  const float* image = nullptr;
  for_each_window(
      s, [&](std::int64_t b) LW_INLINE_LAMBDA { image = x + b * s.height * s.width * channels; },
      [&](std::int64_t top, std::int64_t left, std::int64_t out) LW_INLINE_LAMBDA {
        float* mean = y + out * channels;
        std::fill_n(mean, channels, 0.0f);
        for_each_place(s, top, left, [&](std::int64_t pixel, std::int64_t) LW_INLINE_LAMBDA {
          const float* here = image + pixel * channels;
#pragma omp simd
          for (std::int64_t c = 0; c < channels; ++c) mean[c] += here[c];
        });
#pragma omp simd
        for (std::int64_t c = 0; c < channels; ++c) mean[c] *= share;
      });
}

LW_SIMD void max_forward(float* y, std::uint8_t* from, const float* x, const Pool2dShape& s) {
  if (is_tiled<2>(s) && has_few_channels(s))
    max_of_rows(y, from, x, s);
  else if (is_tiled<2>(s))
    max_of_tiles<2>(y, from, x, s);
  else if (is_tiled<3>(s))
    max_of_tiles<3>(y, from, x, s);
  else
    max_of_windows(y, from, x, s);
}

LW_SIMD void max_backward(float* dx, const float* dy, const std::uint8_t* from,
                          const Pool2dShape& s) {
  const auto value = [=, channels = s.channels](std::int64_t out, std::int64_t place,
                                                std::int64_t c) LW_INLINE_LAMBDA {
    const std::int64_t i = out * channels + c;
    return from[i] == static_cast<std::uint32_t>(place) ? dy[i] : 0.0f;
  };
  if (is_tiled<2>(s))
    fill_tiles<2>(dx, s, value);
  else if (is_tiled<3>(s))
    fill_tiles<3>(dx, s, value);
  else
    sum_windows(dx, s, value);
}

LW_SIMD void avg_forward(float* y, const float* x, const Pool2dShape& s) {
  mean_of_windows(y, x, s);
}

LW_SIMD void avg_backward(float* dx, const float* dy, const Pool2dShape& s) {
  const float share = 1.0f / static_cast<float>(s.kernel * s.kernel);
  const auto value = [=, channels = s.channels](std::int64_t out, std::int64_t, std::int64_t c)
                         LW_INLINE_LAMBDA { return share * dy[out * channels + c]; };
  if (is_tiled<2>(s))
    fill_tiles<2>(dx, s, value);
  else
    sum_windows(dx, s, value);
}

}  // namespace

void max_pool2d_forward(float* y, std::uint8_t* from, const float* x, const Pool2dShape& shape) {
  check_max(shape);
  max_forward(y, from, x, shape);
}

void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                         const Pool2dShape& shape) {
  check_max(shape);
  max_backward(dx, dy, from, shape);
}

void avg_pool2d_forward(float* y, const float* x, const Pool2dShape& shape) {
  check(shape);
  avg_forward(y, x, shape);
}

void avg_pool2d_backward(float* dx, const float* dy, const Pool2dShape& shape) {
  check(shape);
  avg_backward(dx, dy, shape);
}

}  // namespace leeway::kernels
