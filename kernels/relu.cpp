#include "kernels/relu.hpp"

#include "kernels/simd.hpp"

namespace leeway::kernels {

LW_SIMD void relu_forward(float* y, const float* x, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0.0f : x[i];  // false for NaN
}

LW_SIMD void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] <= 0 ? 0.0f : dy[i];
}

}  // namespace leeway::kernels
