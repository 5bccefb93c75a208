#include "kernels/mean_squared_error.hpp"

#include <algorithm>

#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

LW_SIMD float sum_of_squares(const float* y, const float* t, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float difference = y[i] - t[i];
    sum += difference * difference;
  }
  return sum;
}

LW_SIMD void scaled_difference(float* dy, const float* y, const float* t, float scale,
                               std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dy[i] = scale * (y[i] - t[i]);
}

}  // namespace

double mean_squared_error(float* dy, const float* y, const float* t, std::int64_t count,
                          float scale) {
  if (count == 0) return 0;
  constexpr std::int64_t kSection = 1024;  // a section is summed in float, the total in double
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSection)
    sum += sum_of_squares(y + begin, t + begin, std::min(kSection, count - begin));
  const double n = static_cast<double>(count);
  if (dy)
    scaled_difference(dy, y, t, static_cast<float>(2 * static_cast<double>(scale) / n), count);
  return sum / n;
}

}  // namespace leeway::kernels
