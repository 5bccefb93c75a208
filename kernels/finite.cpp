#include "kernels/finite.hpp"

#include <algorithm>
#include <bit>

#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// All exponent bits set: NaN or infinity.
LW_INLINE bool non_finite(float x) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  return (std::bit_cast<std::uint32_t>(x) & kExponent) == kExponent;
}

LW_SIMD bool any_non_finite(const float* x, std::int64_t count) {
  std::uint32_t found = 0;
#pragma omp simd reduction(| : found)
  for (std::int64_t i = 0; i < count; ++i) found |= non_finite(x[i]) ? 1u : 0u;
  return found != 0;
}

}  // namespace

std::int64_t find_non_finite(const float* x, std::int64_t count) {
  constexpr std::int64_t kChunk = 4096;
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const std::int64_t size = std::min(kChunk, count - begin);
    if (!any_non_finite(x + begin, size)) continue;
    return std::find_if(x + begin, x + begin + size, [](float v) { return non_finite(v); }) - x;
  }
  return -1;
}

}  // namespace leeway::kernels
