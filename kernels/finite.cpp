#include "kernels/finite.hpp"

#include <algorithm>
#include <bit>

#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// The bits of a float without the sign; NaN and infinity are at least kInfinity.
LW_INLINE std::int32_t magnitude(float x) {
  return std::bit_cast<std::int32_t>(x) & 0x7fffffff;
}
constexpr std::int32_t kInfinity = 0x7f800000;

LW_SIMD std::int32_t largest_magnitude(const float* x, std::int64_t count) {
  std::int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude(x[i]));
  return largest;
}

}  // namespace

std::int64_t find_non_finite(const float* x, std::int64_t count) {
  constexpr std::int64_t kSection = 4096;
  for (std::int64_t begin = 0; begin < count; begin += kSection) {
    const std::int64_t size = std::min(kSection, count - begin);
    if (largest_magnitude(x + begin, size) < kInfinity) continue;
    return std::find_if(x + begin, x + begin + size,
                        [](float v) { return magnitude(v) >= kInfinity; }) -
           x;
  }
  return -1;
}

}  // namespace leeway::kernels
