#include "kernels/layer_norm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/columns.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

struct RowMoments {
  float mean, variance;
};

/// The second pass sums deviations from an approximate mean and corrects it.
LW_INLINE RowMoments moments_of(const float* x, std::int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += x[c];
  const float near = sum * share;
  float rest = 0, squares = 0;
#pragma omp simd reduction(+ : rest, squares)
  for (std::int64_t c = 0; c < columns; ++c) {
    const float difference = x[c] - near;
    rest += difference;
    squares += difference * difference;
  }
  const float off = rest * share, variance = squares * share - off * off;
  return {near + off, variance < 0 ? 0.0f : variance};
}

/// dgamma (C) = sum over rows of dy * xhat; dbeta (C) = sum of dy: blocks in float, totals in
/// double.
LW_INLINE void parameter_gradients(float* dgamma, float* dbeta, const float* dy, const float* x,
                                   const float* mean, const float* inv_std,
                                   const NormShape& shape) {
  for (std::int64_t first = 0; first < shape.columns; first += kStrip) {
    const std::int64_t width = std::min(kStrip, shape.columns - first);
    double sum_gamma[kStrip] = {}, sum_beta[kStrip] = {};
    for_each_block({0, shape.rows, width, 1},
                   [&](std::int64_t begin, std::int64_t rows) LW_INLINE_LAMBDA {
                     float block_gamma[kStrip] = {}, block_beta[kStrip] = {};
                     for (std::int64_t r = begin; r < begin + rows; ++r) {
                       const float* d = dy + r * shape.columns + first;
                       const float* in = x + r * shape.columns + first;
#pragma omp simd
                       for (std::int64_t j = 0; j < width; ++j) {
                         block_gamma[j] += d[j] * ((in[j] - mean[r]) * inv_std[r]);
                         block_beta[j] += d[j];
                       }
                     }
#pragma omp simd
                     for (std::int64_t j = 0; j < width; ++j) {
                       sum_gamma[j] += static_cast<double>(block_gamma[j]);
                       sum_beta[j] += static_cast<double>(block_beta[j]);
                     }
                   });
    for (std::int64_t j = 0; j < width; ++j) {
      dgamma[first + j] = static_cast<float>(sum_gamma[j]);
      dbeta[first + j] = static_cast<float>(sum_beta[j]);
    }
  }
}

/// One row: dx = inv_std * (g - mean of g - xhat * mean of (g * xhat)), with g = dy * gamma.
LW_INLINE void input_gradient(float* dx, const float* dy, const float* x, float mean, float inv_std,
                              const float* gamma, std::int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t c = 0; c < columns; ++c) {
    const float g = dy[c] * gamma[c];
    sum += g;
    product += g * ((x[c] - mean) * inv_std);
  }
  const float shift = sum * share, slope = product * share;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c)
    dx[c] = inv_std * (dy[c] * gamma[c] - shift - (x[c] - mean) * inv_std * slope);
}

}  // namespace

LW_SIMD void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x,
                                const float* gamma, const float* beta, const NormShape& shape) {
  const std::int64_t columns = shape.columns;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* in = x + r * columns;
    float* out = y + r * columns;
    const RowMoments moments = moments_of(in, columns);
    const float near = moments.mean, scale = 1.0f / std::sqrt(moments.variance + shape.epsilon);
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] = (in[c] - near) * scale * gamma[c] + beta[c];
    mean[r] = near;
    inv_std[r] = scale;
  }
}

LW_SIMD void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy,
                                 const float* x, const float* mean, const float* inv_std,
                                 const float* gamma, const NormShape& shape) {
  parameter_gradients(dgamma, dbeta, dy, x, mean, inv_std, shape);
  if (!dx) return;
  for (std::int64_t r = 0; r < shape.rows; ++r)
    input_gradient(dx + r * shape.columns, dy + r * shape.columns, x + r * shape.columns, mean[r],
                   inv_std[r], gamma, shape.columns);
}

}  // namespace leeway::kernels
