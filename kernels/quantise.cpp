#include "kernels/quantise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/simd.hpp"

namespace leeway::kernels {
namespace {

/// The largest absolute value; NaN or infinity if a value is.
LW_INLINE float largest(const float* values, std::size_t count) {
  // The order of positive floats is that of their bits, and those of NaN are above infinity.
  std::uint32_t bits = 0;
#pragma omp simd reduction(max : bits)
  for (std::size_t i = 0; i < count; ++i)
    bits = std::max(bits, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
  return std::bit_cast<float>(bits);
}

/// The nearest integer, ties to even, of a value below 2^22. 0 for NaN.
LW_INLINE std::int32_t nearest(float value) {
  constexpr float kShift = 0x1.8p23f;  // moves the fraction out of the mantissa
  const float shifted = (value == value ? value : 0.0f) + kShift;
  return std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kShift);
}

/// 1 / scale, the factor of the values. 0 if the scale is 0 or not finite.
LW_INLINE float inverse(float scale, float most) {
  return scale > 0 && most < INFINITY ? 1 / scale : 0.0f;
}

}  // namespace

LW_SIMD float quantise_int8(std::int8_t* __restrict numbers, const float* __restrict values,
                            std::size_t count) {
  const float most = largest(values, count), scale = most / 127, factor = inverse(scale, most);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] =
        static_cast<std::int8_t>(std::clamp<std::int32_t>(nearest(values[i] * factor), -127, 127));
  // A non-finite scale times 0 is NaN.
  return scale;
}

LW_SIMD void accumulate_int8(float* __restrict sum, const std::int8_t* __restrict numbers,
                             float scale, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) sum[i] += scale * static_cast<float>(numbers[i]);
}

LW_SIMD float quantise_int4(std::uint8_t* __restrict pairs, const float* __restrict values,
                            std::size_t count) {
  const float most = largest(values, count), scale = most / 7, factor = inverse(scale, most);
  const std::size_t whole = count / 2;
#pragma omp simd
  for (std::size_t i = 0; i < whole; ++i) {
    const std::int32_t low = std::clamp<std::int32_t>(nearest(values[2 * i] * factor), -7, 7);
    const std::int32_t high = std::clamp<std::int32_t>(nearest(values[2 * i + 1] * factor), -7, 7);
    pairs[i] = static_cast<std::uint8_t>((low & 15) | (high & 15) << 4);
  }
  if (count % 2 == 1)
    pairs[whole] = static_cast<std::uint8_t>(
        std::clamp<std::int32_t>(nearest(values[count - 1] * factor), -7, 7) & 15);
  return scale;
}

LW_SIMD void accumulate_int4(float* __restrict sum, const std::uint8_t* __restrict pairs,
                             float scale, std::size_t count) {
  const std::size_t whole = count / 2;
  // Shifts up and down extend the sign of four bits.
#pragma omp simd
  for (std::size_t i = 0; i < whole; ++i) {
    const auto pair = static_cast<std::int32_t>(pairs[i]);
    sum[2 * i] +=
        scale *
        static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) << 28) >> 28);
    sum[2 * i + 1] +=
        scale *
        static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) << 24) >> 28);
  }
  if (count % 2 == 1)
    sum[count - 1] +=
        scale *
        static_cast<float>(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(pairs[whole]) << 28) >> 28);
}

LW_SIMD void quantise_two_bit(std::uint8_t* __restrict quads, const float* __restrict values,
                              float threshold, std::size_t count) {
  const auto code = [=](float value) LW_INLINE_LAMBDA {
    const unsigned broken = value - value == 0 ? 0u : 3u;  // infinite or NaN
    return (value >= threshold ? 1u : 0u) | (value <= -threshold ? 2u : 0u) | broken;
  };
  const std::size_t whole = count / 4;
#pragma omp simd
  for (std::size_t i = 0; i < whole; ++i)
    quads[i] =
        static_cast<std::uint8_t>(code(values[4 * i]) | code(values[4 * i + 1]) << 2 |
                                  code(values[4 * i + 2]) << 4 | code(values[4 * i + 3]) << 6);
  if (whole * 4 == count) return;
  unsigned last = 0;
  for (std::size_t i = whole * 4; i < count; ++i) last |= code(values[i]) << 2 * (i % 4);
  quads[whole] = static_cast<std::uint8_t>(last);
}

LW_SIMD void accumulate_two_bit(float* __restrict sum, const std::uint8_t* __restrict quads,
                                float threshold, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned code = quads[i / 4] >> 2 * (i % 4) & 3u;
    const float sent = code == 1 ? threshold : code == 2 ? -threshold : 0.0f;
    sum[i] += code == 3 ? NAN : sent;
  }
}

LW_SIMD void quantise_one_bit(std::uint8_t* __restrict signs, float* __restrict means,
                              const float* __restrict values, std::size_t count) {
  float below = 0, above = 0;
  std::int32_t negatives = 0;
#pragma omp simd reduction(+ : below, above, negatives)
  for (std::size_t i = 0; i < count; ++i) {
    const bool negative = values[i] < 0;
    below += negative ? values[i] : 0.0f;
    above += negative ? 0.0f : values[i];
    negatives += negative ? 1 : 0;
  }
  const auto positives = static_cast<std::int32_t>(count) - negatives;
  means[0] = negatives > 0 ? below / static_cast<float>(negatives) : 0.0f;
  means[1] = positives > 0 ? above / static_cast<float>(positives) : 0.0f;
  for (std::size_t i = 0; i < count; i += 8) {
    unsigned bits = 0;
    for (std::size_t j = i; j < std::min(i + 8, count); ++j)
      bits |= (values[j] < 0 ? 0u : 1u) << (j - i);
    signs[i / 8] = static_cast<std::uint8_t>(bits);
  }
}

LW_SIMD void accumulate_one_bit(float* __restrict sum, const std::uint8_t* __restrict signs,
                                float negative, float positive, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    sum[i] += signs[i / 8] >> (i % 8) & 1u ? positive : negative;
}

}  // namespace leeway::kernels
