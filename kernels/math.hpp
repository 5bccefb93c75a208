#pragma once
// exp, tanh, sigmoid and the normal distribution in single precision, written in plain arithmetic:
// the compiler vectorises loops over them, and the GPU uses the same formulas.
//
// Error bounds are relative unless stated otherwise. NaN gives NaN.
#include <bit>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// exp(x) = power * (1 + r * series), with power = 2^n, x = n ln 2 + r and |r| <= ln 2 / 2.
struct ExpParts {
  float power, r, series;
};

/// For x <= 0; x below -87 counts as -87. The Taylor series of (exp(r) - 1) / r has a remainder
/// below 1e-8.
LW_INLINE ExpParts exp_parts(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the rounded integer in the low bits
  const float clamped = x < -87.0f ? -87.0f : x;
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  const auto power = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u;  // 2^n
  return {std::bit_cast<float>(power), r, p};
}

/// exp(x) for x <= 0 to two units in the last place; 0 below -87 (where floats become subnormal).
LW_INLINE float exp_non_positive(float x) {
  const ExpParts e = exp_parts(x);
  const float result = (e.series * e.r + 1.0f) * e.power;
  return x < -87.0f ? 0.0f : result;
}

LW_INLINE float magnitude(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
}

/// log(1 + u) for 0 <= u <= 1 to three units in the last place: 2 artanh(s) with s = u / (2 + u),
/// a series in s^2 fitted to 4e-9.
LW_INLINE float log1p_of_fraction(float u) {
  const float s = u / (2.0f + u), z = s * s;
  float p = 0.281577784f;
  p = p * z + 0.279651577f;
  p = p * z + 0.400245952f;
  p = p * z + 0.666663216f;
  p = p * z + 2.0f;
  return s * p;
}

/// 1 / (1 + exp(-x)) to 3e-7; 0 below -87.
LW_INLINE float sigmoid(float x) {
  const float e = exp_non_positive(-magnitude(x));
  const float top = x < 0 ? e : 1.0f;
  return top / (1.0f + e);
}

/// tanh(x) to 3e-7, also near 0, because exp(-2 |x|) - 1 is computed without cancellation.
LW_INLINE float tanh(float x) {
  const ExpParts e = exp_parts(-2.0f * magnitude(x));
  const float minus_one = e.power * (e.series * e.r) + (e.power - 1.0f);
  const float positive = -minus_one / (2.0f + minus_one);
  return x < 0 ? -positive : positive;
}

/// The normal distribution and its density at x.
struct Normal {
  float distribution, density;
};

/// The distribution to 3e-7, and to 5e-7 (1 + x^2) relative for x < 0, so that the tail vanishes
/// correctly. For x <= 0 it is erfc(a) / 2 with a = -x / sqrt(2). erfc(a) exp(a^2) is t times a
/// polynomial in t = 1 / (1 + 0.3 a), the form of Abramowitz and Stegun 7.1.26, refitted to 3e-8
/// for a <= 9.4; beyond that, exp(-a^2) is 0 in single precision.
LW_INLINE Normal normal(float x) {
  constexpr float kSqrtHalf = 0.707106781f, kInverseSqrt2Pi = 0.398942280f;
  const float a = magnitude(x) * kSqrtHalf;
  const float e = exp_non_positive(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.3f * a);
  float p = -0.130419334f;
  p = p * t + 0.49020514f;
  p = p * t - 0.522535962f;
  p = p * t + 0.560327382f;
  p = p * t - 0.104055148f;
  p = p * t + 0.219276235f;
  p = p * t + 0.147123141f;
  p = p * t + 0.170902715f;
  p = p * t + 0.169175812f;
  const float tail = 0.5f * t * p * e;
  return {x < 0 ? tail : 1.0f - tail, kInverseSqrt2Pi * e};
}

}  // namespace leeway::kernels
