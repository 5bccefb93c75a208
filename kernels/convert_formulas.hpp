#pragma once
// Conversions of a number between f32 and the narrower types, by its bits. Widening is exact;
// narrowing rounds to nearest, ties to even.
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// The upper half of an f32.
struct Bf16 {
  std::uint16_t bits;
};

/// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
struct F16 {
  std::uint16_t bits;
};

LW_INLINE float to_float(float x) {
  return x;
}

LW_INLINE float to_float(std::int8_t x) {
  return static_cast<float>(x);
}

LW_INLINE float to_float(std::int32_t x) {
  return static_cast<float>(x);
}

LW_INLINE float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

LW_INLINE float to_float(F16 x) {
  const std::uint32_t bits = x.bits, sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
  // Read as an f32, `rest` has an exponent that is too small by 112. The product is exact and
  // normalises numbers that are subnormal in f16.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  const std::uint32_t value = rest >= 0x0f800000u ? rest | 0x7f800000u : scaled;  // NaN, infinity
  return std::bit_cast<float>(sign | value);
}

LW_INLINE void from_float(float& to, float x) {
  to = x;
}

LW_INLINE void from_float(Bf16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const std::uint32_t quiet = bits | 0x400000u;  // a truncated NaN stays a NaN
  to.bits = static_cast<std::uint16_t>((x == x ? rounded : quiet) >> 16);
}

LW_INLINE void from_float(F16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  // Normal in f16: the exponent shrinks by 112; a carry from rounding correctly increments it.
  const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // Subnormal in f16: adding 0.5 rounds, since the last place of 0.5 is f16's smallest number.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = rest < 0x38800000u ? subnormal : normal;
  const std::uint32_t nan = 0x7e00u | ((rest >> 13) & 0x3ffu);
  const std::uint32_t large = rest > 0x7f800000u ? nan : 0x7c00u;  // from 65520 on: infinity
  to.bits = static_cast<std::uint16_t>(sign | (rest >= 0x477ff000u ? large : finite));
}

/// Clamps x to [lowest, largest], floats that the integer type can represent; NaN becomes 0.
LW_INLINE float within(float x, float lowest, float largest) {
  const float number = x == x ? x : 0.0f;
  const float raised = number < lowest ? lowest : number;
  return raised > largest ? largest : raised;
}

LW_INLINE void from_float(std::int8_t& to, float x) {
  to = static_cast<std::int8_t>(
      static_cast<std::int32_t>(std::nearbyint(within(x, -128.0f, 127.0f))));
}

LW_INLINE void from_float(std::int32_t& to, float x) {
  // The largest float below 2^31 converts; larger numbers become the largest integer.
  const auto number = static_cast<std::int32_t>(std::nearbyint(within(x, -0x1p31f, 2147483520.0f)));
  to = x >= 0x1p31f ? 2147483647 : number;
}

}  // namespace leeway::kernels
