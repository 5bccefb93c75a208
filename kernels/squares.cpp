#include "kernels/squares.hpp"

#include "kernels/simd.hpp"

namespace leeway::kernels {

LW_SIMD double sum_of_squares(const float* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace leeway::kernels
