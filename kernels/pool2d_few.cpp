#include "kernels/pool2d_few.hpp"

#include <algorithm>
#include <array>

#include "kernels/pool2d_formula.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// Numbers of one row of pixels, at most.
constexpr std::int64_t kMaxRow = 1024;
constexpr std::int64_t kFewChannels = 32;

/// Where the numbers of an output row come from, and those of an input row go to.
struct Places {
  explicit Places(const Pool2dShape& s) {
    const auto channels = static_cast<std::int32_t>(s.channels);
    const auto out_floats = static_cast<std::int32_t>(s.out_width() * s.channels);
    for (std::int32_t i = 0; i < out_floats; ++i)
      corner[static_cast<std::size_t>(i)] = i / channels * 2 * channels + i % channels;
    for (std::int32_t i = 0; i < 2 * out_floats; ++i) {
      window[static_cast<std::size_t>(i)] = i / channels / 2 * channels + i % channels;
      column[static_cast<std::size_t>(i)] = i / channels % 2;
    }
  }
  std::array<std::int32_t, kMaxRow> corner;  // of each output: its window's first pixel
  std::array<std::int32_t, kMaxRow> window;  // of each input: the output that it is a part of
  std::array<std::int32_t, kMaxRow> column;  // of each input: its column in the window
};

LW_SIMD void max_row(float* __restrict y, std::int32_t* __restrict place,
                     const float* __restrict top, const float* __restrict bottom,
                     const std::int32_t* __restrict corner, std::int64_t channels,
                     std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t at = corner[i];
    float best = top[at];
    std::int32_t where = 0;
    challenge(best, where, top[at + channels], 1);
    challenge(best, where, bottom[at], 2);
    challenge(best, where, bottom[at + channels], 3);
    y[i] = best;
    place[i] = where;
  }
}

/// One row of dx, the window's row `row`.
LW_SIMD void spread_row(float* __restrict dx, const float* __restrict dy,
                        const std::int32_t* __restrict place, const std::int32_t* __restrict window,
                        const std::int32_t* __restrict column, std::int32_t row,
                        std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = dy[window[i]];
    dx[i] = place[window[i]] == 2 * row + column[i] ? gradient : 0.0f;
  }
}

}  // namespace

bool max_pool2d_few_fits(const Pool2dShape& s) {
  return s.kernel == 2 && s.stride == 2 && s.padding == 0 && s.channels <= kFewChannels &&
         s.width * s.channels <= kMaxRow;
}

void max_pool2d_few_forward(float* y, std::uint8_t* from, const float* x, const Pool2dShape& s) {
  const Places places(s);
  const std::int64_t row = s.width * s.channels, out_row = s.out_width() * s.channels;
  std::int32_t place[kMaxRow];
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.out_height(); ++h) {
      const float* top = x + (b * s.height + 2 * h) * row;
      max_row(y, place, top, top + row, places.corner.data(), s.channels, out_row);
      y += out_row;
      if (!from) continue;
      std::transform(place, place + out_row, from,
                     [](std::int32_t at) { return static_cast<std::uint8_t>(at); });
      from += out_row;
    }
  }
}

void max_pool2d_few_backward(float* dx, const float* dy, const std::uint8_t* from,
                             const Pool2dShape& s) {
  const Places places(s);
  const std::int64_t row = s.width * s.channels, out_row = s.out_width() * s.channels;
  std::int32_t place[kMaxRow];
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.height; ++h, dx += row) {
      if (h / 2 == s.out_height()) {  // the row below the last windows
        std::fill_n(dx, row, 0.0f);
        continue;
      }
      const std::int64_t window_row = (b * s.out_height() + h / 2) * out_row;
      if (h % 2 == 0) std::copy_n(from + window_row, out_row, place);
      spread_row(dx, dy + window_row, place, places.window.data(), places.column.data(),
                 static_cast<std::int32_t>(h % 2), 2 * out_row);
      std::fill(dx + 2 * out_row, dx + row, 0.0f);
    }
  }
}

}  // namespace leeway::kernels
