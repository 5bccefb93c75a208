#include "kernels/channels.hpp"

#include <algorithm>

#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// For few channels: handles whole pixels, with constant strides.
template <int C>
LW_INLINE void interleave(float* __restrict y, const float* __restrict x, std::int64_t pixels) {
#pragma omp simd
  for (std::int64_t s = 0; s < pixels; ++s)
    for (int c = 0; c < C; ++c) y[s * C + c] = x[c * pixels + s];
}

template <int C>
LW_INLINE void separate(float* __restrict y, const float* __restrict x, std::int64_t pixels) {
#pragma omp simd
  for (std::int64_t s = 0; s < pixels; ++s)
    for (int c = 0; c < C; ++c) y[c * pixels + s] = x[s * C + c];
}

/// y (columns, rows) = x (rows, columns), in tiles whose lines stay in the first-level cache.
LW_INLINE void transpose(float* __restrict y, const float* __restrict x, std::int64_t rows,
                         std::int64_t columns) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const std::int64_t r1 = std::min(rows, r0 + kTile), c1 = std::min(columns, c0 + kTile);
      for (std::int64_t c = c0; c < c1; ++c)
        for (std::int64_t r = r0; r < r1; ++r) y[c * rows + r] = x[r * columns + c];
    }
}

LW_INLINE void image_to_last(float* y, const float* x, std::int64_t channels, std::int64_t pixels) {
  switch (channels) {
    case 2:
      return interleave<2>(y, x, pixels);
    case 3:
      return interleave<3>(y, x, pixels);
    case 4:
      return interleave<4>(y, x, pixels);
    default:
      return transpose(y, x, channels, pixels);
  }
}

LW_INLINE void image_to_first(float* y, const float* x, std::int64_t channels,
                              std::int64_t pixels) {
  switch (channels) {
    case 2:
      return separate<2>(y, x, pixels);
    case 3:
      return separate<3>(y, x, pixels);
    case 4:
      return separate<4>(y, x, pixels);
    default:
      return transpose(y, x, pixels, channels);
  }
}

/// Calls move(image of y, image of x) for each image, or copies all if both orders are the same.
template <class Move>
LW_INLINE void for_each_image(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                              std::int64_t pixels, Move move) {
  const std::int64_t floats = channels * pixels;
  if (channels == 1 || pixels == 1) {
    std::copy_n(x, batch * floats, y);
    return;
  }
  for (std::int64_t b = 0; b < batch; ++b) move(y + b * floats, x + b * floats);
}

}  // namespace

LW_SIMD void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                              std::int64_t pixels) {
  for_each_image(y, x, batch, channels, pixels, [=](float* to, const float* from) LW_INLINE_LAMBDA {
    image_to_last(to, from, channels, pixels);
  });
}

LW_SIMD void to_channels_first(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                               std::int64_t pixels) {
  for_each_image(y, x, batch, channels, pixels, [=](float* to, const float* from) LW_INLINE_LAMBDA {
    image_to_first(to, from, channels, pixels);
  });
}

}  // namespace leeway::kernels
