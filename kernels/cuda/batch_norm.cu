#include <cmath>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"

namespace leeway::kernels::cuda {

namespace {

/// y = (x - mean) * inv_std * gamma + beta, with mean and inv_std per channel. y may be x.
void normalize(On on, float* y, const float* x, const float* gamma, const float* beta,
               const float* mean, const float* inv_std, const NormShape& shape) {
  const std::int64_t columns = shape.columns;
  map(
      on, shape.rows * columns, y,
      [=] __device__(std::int64_t i, float value) {
        const std::int64_t c = divide(i, columns).remainder;
        return (value - mean[c]) * inv_std[c] * gamma[c] + beta[c];
      },
      x);
}

}  // namespace

void batch_norm_forward(On on, float* y, float* mean, float* inv_std, const float* x,
                        const float* gamma, const float* beta, const NormShape& shape) {
  const auto [rows, columns, epsilon] = shape;
  // One pass: sums of the distance to the first row, in double, so that a large mean costs the
  // variance no digits.
  reduce_columns<2>(
      on, rows, columns,
      [=, columns = columns] __device__(std::int64_t row, std::int64_t c) {
        const double d = static_cast<double>(x[row * columns + c]) - static_cast<double>(x[c]);
        return Sums<2>{{d, d * d}};
      },
      [=, rows = rows, epsilon = epsilon] __device__(std::int64_t c, const Sums<2>& sums) {
        if (rows == 0) {
          mean[c] = 0;
          inv_std[c] = 1;
          return;
        }
        const double n = static_cast<double>(rows);
        const double from_first = sums.of[0] / n;
        const double variance = sums.of[1] / n - from_first * from_first;
        mean[c] = static_cast<float>(static_cast<double>(x[c]) + from_first);
        inv_std[c] = static_cast<float>(
            1 / sqrt((variance < 0 ? 0 : variance) + static_cast<double>(epsilon)));
      });
  normalize(on, y, x, gamma, beta, mean, inv_std, shape);
}

void batch_norm_inference(On on, float* y, const float* x, const float* gamma, const float* beta,
                          const float* mean, const float* variance, const NormShape& shape) {
  const std::int64_t columns = shape.columns;
  const float epsilon = shape.epsilon;
  map(
      on, shape.rows * columns, y,
      [=] __device__(std::int64_t i, float value) {
        const std::int64_t c = divide(i, columns).remainder;
        return (value - mean[c]) * (1 / sqrtf(variance[c] + epsilon)) * gamma[c] + beta[c];
      },
      x);
}

void batch_norm_statistics(On on, float* batch_mean, float* batch_variance, const float* mean,
                           const float* inv_std, const NormShape& shape) {
  const double n = static_cast<double>(shape.rows);
  const double unbiased = shape.rows < 2 ? 1 : n / (n - 1);
  const double epsilon = static_cast<double>(shape.epsilon);
  for_each(on, shape.columns, [=] __device__(std::int64_t c) {
    const double s = static_cast<double>(inv_std[c]);
    const double variance = 1 / (s * s) - epsilon;
    batch_mean[c] = mean[c];
    batch_variance[c] = static_cast<float>((variance < 0 ? 0 : variance) * unbiased);
  });
}

void batch_norm_backward(On on, float* dx, float* dgamma, float* dbeta, const float* dy,
                         const float* x, const float* mean, const float* inv_std,
                         const float* gamma, const NormShape& shape) {
  const std::int64_t rows = shape.rows, columns = shape.columns;
  reduce_columns<2>(
      on, rows, columns,
      [=] __device__(std::int64_t row, std::int64_t c) {
        const std::int64_t i = row * columns + c;
        const double g = static_cast<double>(dy[i]);
        return Sums<2>{{g, g * static_cast<double>((x[i] - mean[c]) * inv_std[c])}};
      },
      [=] __device__(std::int64_t c, const Sums<2>& sums) {
        dbeta[c] = static_cast<float>(sums.of[0]);
        dgamma[c] = static_cast<float>(sums.of[1]);
      });
  if (!dx) return;
  const float share = rows == 0 ? 0.0f : 1.0f / static_cast<float>(rows);
  map(
      on, rows * columns, dx,
      [=] __device__(std::int64_t i, float g, float value) {
        const std::int64_t c = divide(i, columns).remainder;
        const float normal = (value - mean[c]) * inv_std[c];
        const float centred = g - (dbeta[c] + normal * dgamma[c]) * share;
        return gamma[c] * inv_std[c] * centred;
      },
      dy, x);
}

}  // namespace leeway::kernels::cuda
