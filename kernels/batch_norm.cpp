#include "kernels/batch_norm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/columns.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// Mean and sum of squared deviations of each column of a strip, over `count` rows. They are merged
/// by Chan, Golub and LeVeque (1983, equation 2.1), which does not cancel if the mean is far from
/// 0.
struct Moments {
  double mean[kStrip] = {}, squares[kStrip] = {};
  double count = 0;
};

LW_INLINE void join(double& mean, double& squares, double count, double other_mean,
                    double other_squares, double other_count) {
  const double difference = other_mean - mean, share = other_count / (count + other_count);
  mean += difference * share;
  squares += other_squares + difference * difference * count * share;
}

/// Adds a block of rows: float sums about an approximate mean, which the second pass corrects.
LW_INLINE void add_block(Moments& moments, const float* x, std::int64_t rows, std::int64_t width,
                         std::int64_t stride) {
  float mean[kStrip] = {}, sum[kStrip] = {}, squares[kStrip] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) mean[j] += row[j];
  }
  const float share = 1.0f / static_cast<float>(rows);
  for (std::int64_t j = 0; j < width; ++j) mean[j] *= share;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const float difference = row[j] - mean[j];
      sum[j] += difference;
      squares[j] += difference * difference;
    }
  }
  const double n = static_cast<double>(rows);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const double off = static_cast<double>(sum[j]) / n;
    join(moments.mean[j], moments.squares[j], moments.count, static_cast<double>(mean[j]) + off,
         static_cast<double>(squares[j]) - n * off * off, n);
  }
  moments.count += n;
}

LW_INLINE Moments moments_of(const float* x, const Strip& strip) {
  Moments moments;
  for_each_block(strip.wide, [&](std::int64_t begin, std::int64_t rows) LW_INLINE_LAMBDA {
    add_block(moments, x + begin, rows, strip.wide.width, strip.wide.stride);
  });
  if (moments.count > 0)
    for (std::int64_t f = 1; f < strip.fold; ++f)
      for (std::int64_t c = 0; c < strip.columns; ++c)
        join(moments.mean[c], moments.squares[c], static_cast<double>(f) * moments.count,
             moments.mean[f * strip.columns + c], moments.squares[f * strip.columns + c],
             moments.count);
  moments.count *= static_cast<double>(strip.fold);
  for_each_block(strip.rest, [&](std::int64_t begin, std::int64_t rows) LW_INLINE_LAMBDA {
    add_block(moments, x + begin, rows, strip.rest.width, strip.rest.stride);
  });
  return moments;
}

/// y = (x - mean) * scale + shift
struct Affine {
  float mean[kStrip], scale[kStrip], shift[kStrip];
};

LW_INLINE void apply(float* y, const float* x, const RowRange& range, const Affine& affine) {
  for (std::int64_t r = 0; r < range.rows; ++r) {
    const float* in = x + range.begin + r * range.stride;
    float* out = y + range.begin + r * range.stride;
#pragma omp simd
    for (std::int64_t j = 0; j < range.width; ++j)
      out[j] = (in[j] - affine.mean[j]) * affine.scale[j] + affine.shift[j];
  }
}

/// mean, inv_std, gamma, beta: of the strip's columns.
LW_INLINE void normalise(float* y, const float* x, const Strip& strip, const float* mean,
                         const float* inv_std, const float* gamma, const float* beta) {
  Affine affine;
  float spread_gamma[kStrip];
  repeat(affine.mean, mean, strip);
  repeat(affine.scale, inv_std, strip);
  repeat(spread_gamma, gamma, strip);
  repeat(affine.shift, beta, strip);
  for (std::int64_t j = 0; j < strip.wide.width; ++j) affine.scale[j] *= spread_gamma[j];
  apply(y, x, strip.wide, affine);
  apply(y, x, strip.rest, affine);
}

LW_INLINE float inverse_std(double variance, float epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon)));
}

/// Sums of dy and of dy * (x - mean) for each column: blocks in float, totals in double.
struct GradientSums {
  double dy[kStrip] = {}, product[kStrip] = {};
};

LW_INLINE void add_gradients(GradientSums& sums, const float* dy, const float* x,
                             const RowRange& range, const float* mean) {
  for_each_block(range, [&](std::int64_t begin, std::int64_t rows) LW_INLINE_LAMBDA {
    float block_dy[kStrip] = {}, block_product[kStrip] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* d = dy + begin + r * range.stride;
      const float* in = x + begin + r * range.stride;
#pragma omp simd
      for (std::int64_t j = 0; j < range.width; ++j) {
        block_dy[j] += d[j];
        block_product[j] += d[j] * (in[j] - mean[j]);
      }
    }
#pragma omp simd
    for (std::int64_t j = 0; j < range.width; ++j) {
      sums.dy[j] += static_cast<double>(block_dy[j]);
      sums.product[j] += static_cast<double>(block_product[j]);
    }
  });
}

LW_INLINE GradientSums gradient_sums(const float* dy, const float* x, const Strip& strip,
                                     const float* spread_mean) {
  GradientSums sums;
  add_gradients(sums, dy, x, strip.wide, spread_mean);
  for (std::int64_t f = 1; f < strip.fold; ++f)
    for (std::int64_t c = 0; c < strip.columns; ++c) {
      sums.dy[c] += sums.dy[f * strip.columns + c];
      sums.product[c] += sums.product[f * strip.columns + c];
    }
  add_gradients(sums, dy, x, strip.rest, spread_mean);
  return sums;
}

/// dx = dy * scale - (x - mean) * slope - shift
struct Backward {
  float mean[kStrip], scale[kStrip], slope[kStrip], shift[kStrip];
};

LW_INLINE void apply(float* dx, const float* dy, const float* x, const RowRange& range,
                     const Backward& backward) {
  for (std::int64_t r = 0; r < range.rows; ++r) {
    const std::int64_t begin = range.begin + r * range.stride;
#pragma omp simd
    for (std::int64_t j = 0; j < range.width; ++j)
      dx[begin + j] = dy[begin + j] * backward.scale[j] -
                      (x[begin + j] - backward.mean[j]) * backward.slope[j] - backward.shift[j];
  }
}

}  // namespace

LW_SIMD void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x,
                                const float* gamma, const float* beta, const NormShape& shape) {
  if (shape.rows == 0) {
    std::fill_n(mean, shape.columns, 0.0f);
    std::fill_n(inv_std, shape.columns, 1.0f);
    return;
  }
  for_each_strip(shape.rows, shape.columns, [&](const Strip& strip) LW_INLINE_LAMBDA {
    const Moments moments = moments_of(x, strip);
    for (std::int64_t c = 0; c < strip.columns; ++c) {
      mean[strip.first + c] = static_cast<float>(moments.mean[c]);
      inv_std[strip.first + c] = inverse_std(moments.squares[c] / moments.count, shape.epsilon);
    }
    normalise(y, x, strip, mean + strip.first, inv_std + strip.first, gamma + strip.first,
              beta + strip.first);
  });
}

LW_SIMD void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                                  const float* mean, const float* variance,
                                  const NormShape& shape) {
  for_each_strip(shape.rows, shape.columns, [&](const Strip& strip) LW_INLINE_LAMBDA {
    float inv_std[kStrip];
    for (std::int64_t c = 0; c < strip.columns; ++c)
      inv_std[c] = inverse_std(static_cast<double>(variance[strip.first + c]), shape.epsilon);
    normalise(y, x, strip, mean + strip.first, inv_std, gamma + strip.first, beta + strip.first);
  });
}

void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                           const float* inv_std, const NormShape& shape) {
  const double rows = static_cast<double>(shape.rows);
  const double unbiased = shape.rows < 2 ? 1 : rows / (rows - 1);
  for (std::int64_t c = 0; c < shape.columns; ++c) {
    const double inverse = static_cast<double>(inv_std[c]);
    const double variance = 1 / (inverse * inverse) - static_cast<double>(shape.epsilon);
    batch_mean[c] = mean[c];
    batch_variance[c] = static_cast<float>(variance < 0 ? 0 : unbiased * variance);
  }
}

LW_SIMD void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy,
                                 const float* x, const float* mean, const float* inv_std,
                                 const float* gamma, const NormShape& shape) {
  const double share = shape.rows == 0 ? 0 : 1 / static_cast<double>(shape.rows);
  for_each_strip(shape.rows, shape.columns, [&](const Strip& strip) LW_INLINE_LAMBDA {
    Backward backward;
    repeat(backward.mean, mean + strip.first, strip);
    const GradientSums sums = gradient_sums(dy, x, strip, backward.mean);
    float scale[kStrip], slope[kStrip], shift[kStrip];
    for (std::int64_t c = 0; c < strip.columns; ++c) {
      const double inverse = static_cast<double>(inv_std[strip.first + c]);
      const double gain = static_cast<double>(gamma[strip.first + c]) * inverse;
      dgamma[strip.first + c] = static_cast<float>(sums.product[c] * inverse);
      dbeta[strip.first + c] = static_cast<float>(sums.dy[c]);
      scale[c] = static_cast<float>(gain);
      slope[c] = static_cast<float>(gain * inverse * inverse * sums.product[c] * share);
      shift[c] = static_cast<float>(gain * sums.dy[c] * share);
    }
    if (!dx) return;
    repeat(backward.scale, scale, strip);
    repeat(backward.slope, slope, strip);
    repeat(backward.shift, shift, strip);
    apply(dx, dy, x, strip.wide, backward);
    apply(dx, dy, x, strip.rest, backward);
  });
}

}  // namespace leeway::kernels
