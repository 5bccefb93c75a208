#pragma once
// Codes of few bits for a number, and the scales of its block: one formula for CPU and GPU.
//
// On every device, the product of a value and a factor is rounded before nearest_level() adds to
// it: a fused multiply-add would round some values to another integer.
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// The bits of |value|. Their order is that of the values; those of NaN are above infinity.
LW_INLINE std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
}

/// The scale of a block whose largest magnitude has these bits, for integers up to `levels`.
LW_INLINE float scale_of(std::uint32_t bits, float levels) {
  return std::bit_cast<float>(bits) / levels;
}

/// 1 / scale, the factor of the values. 0 if the scale is 0 or not finite.
LW_INLINE float inverse(float scale, float most) {
  return scale > 0 && most < INFINITY ? 1 / scale : 0.0f;
}

/// The nearest integer, ties to even, of a value below 2^22. 0 for NaN.
LW_INLINE std::int32_t nearest(float value) {
  constexpr float kShift = 0x1.8p23f;  // moves the fraction out of the mantissa
  const float shifted = (value == value ? value : 0.0f) + kShift;
  return std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kShift);
}

/// The nearest integer from -levels to levels.
LW_INLINE std::int32_t nearest_level(float value, std::int32_t levels) {
  const std::int32_t number = nearest(value);
  return number < -levels ? -levels : number > levels ? levels : number;
}

/// 1 for plus, 2 for minus, 3 for values that are not finite, else 0.
LW_INLINE std::uint32_t two_bit_code(float value, float threshold) {
  const std::uint32_t broken = value - value == 0 ? 0u : 3u;
  return (value >= threshold ? 1u : 0u) | (value <= -threshold ? 2u : 0u) | broken;
}

LW_INLINE float two_bit_value(std::uint32_t code, float threshold) {
  return code == 3 ? NAN : code == 2 ? -threshold : code == 1 ? threshold : 0.0f;
}

/// A finite value limited to -most..most; others as they are.
LW_INLINE float saturated(float value, float most) {
  const float size = std::fabs(value);
  return size > most && size < INFINITY ? std::copysign(most, value) : value;
}

constexpr float kLargestF16 = 65504;

}  // namespace leeway::kernels
