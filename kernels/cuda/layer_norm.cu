#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"

namespace leeway::kernels::cuda {

namespace {

constexpr std::int64_t kRowsOfBlock = kThreads / kWarp;

/// One warp per row: its mean, then its variance about that mean, then y.
__global__ void __launch_bounds__(kThreads)
    forward_kernel(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                   const float* beta, NormShape shape) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t columns = shape.columns;
  for (std::int64_t row = first_index() / kWarp; row < shape.rows; row += index_step() / kWarp) {
    const float* const in = x + row * columns;
    double sum = 0;
    for (std::int64_t c = lane; c < columns; c += kWarp) sum += static_cast<double>(in[c]);
    const double m = warp_sum(sum) / static_cast<double>(columns);
    double squares = 0;
    for (std::int64_t c = lane; c < columns; c += kWarp) {
      const double d = static_cast<double>(in[c]) - m;
      squares += d * d;
    }
    const double variance = warp_sum(squares) / static_cast<double>(columns);
    const float centre = static_cast<float>(m);
    const float s = static_cast<float>(1 / sqrt(variance + static_cast<double>(shape.epsilon)));
    for (std::int64_t c = lane; c < columns; c += kWarp)
      y[row * columns + c] = (in[c] - centre) * s * gamma[c] + beta[c];
    if (lane == 0) {
      mean[row] = centre;
      inv_std[row] = s;
    }
  }
}

/// One warp per row: the means of the gradient and of its product with the normalised input, then
/// dx. Each lane reads an element of dy before it writes the same element of dx, which may be dy.
__global__ void __launch_bounds__(kThreads)
    backward_kernel(float* dx, const float* dy, const float* x, const float* mean,
                    const float* inv_std, const float* gamma, NormShape shape) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t columns = shape.columns;
  for (std::int64_t row = first_index() / kWarp; row < shape.rows; row += index_step() / kWarp) {
    const float* const in = x + row * columns;
    const float* const g = dy + row * columns;
    const float m = mean[row], s = inv_std[row];
    double sum = 0, products = 0;
    for (std::int64_t c = lane; c < columns; c += kWarp) {
      const double d = static_cast<double>(g[c] * gamma[c]);
      sum += d;
      products += d * static_cast<double>((in[c] - m) * s);
    }
    const auto n = static_cast<double>(columns);
    const float mean_of_g = static_cast<float>(warp_sum(sum) / n);
    const float mean_of_products = static_cast<float>(warp_sum(products) / n);
    for (std::int64_t c = lane; c < columns; c += kWarp)
      dx[row * columns + c] =
          s * (g[c] * gamma[c] - mean_of_g - (in[c] - m) * s * mean_of_products);
  }
}

}  // namespace

void layer_norm_forward(On on, float* y, float* mean, float* inv_std, const float* x,
                        const float* gamma, const float* beta, const NormShape& shape) {
  if (shape.rows == 0) return;
  launch(on, blocks_for(shape.rows, kRowsOfBlock), kThreads, forward_kernel, y, mean, inv_std, x,
         gamma, beta, shape);
}

void layer_norm_backward(On on, float* dx, float* dgamma, float* dbeta, const float* dy,
                         const float* x, const float* mean, const float* inv_std,
                         const float* gamma, const NormShape& shape) {
  const std::int64_t columns = shape.columns;
  // Before dx, which may overwrite dy.
  reduce_columns<2>(
      on, shape.rows, columns,
      [=] __device__(std::int64_t row, std::int64_t c) {
        const std::int64_t i = row * columns + c;
        const double g = static_cast<double>(dy[i]);
        return Sums<2>{{g, g * static_cast<double>((x[i] - mean[row]) * inv_std[row])}};
      },
      [=] __device__(std::int64_t c, const Sums<2>& sums) {
        dbeta[c] = static_cast<float>(sums.of[0]);
        dgamma[c] = static_cast<float>(sums.of[1]);
      });
  if (!dx || shape.rows == 0) return;
  launch(on, blocks_for(shape.rows, kRowsOfBlock), kThreads, backward_kernel, dx, dy, x, mean,
         inv_std, gamma, shape);
}

}  // namespace leeway::kernels::cuda
