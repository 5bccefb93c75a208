#include "kernels/softmax_cross_entropy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

/// exp(x) for x <= 0 to two units in the last place; 0 below -87 (where floats become subnormal);
/// NaN for NaN. x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 7,
/// whose remainder is below 1e-8.
LW_INLINE float exp_non_positive(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, left in the low bits
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
  p = p * r + 1.0f;
  const auto power = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u;  // 2^n
  const float result = p * std::bit_cast<float>(power);
  return x < -87.0f ? 0.0f : result;
}

LW_INLINE float max_of(const float* x, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = largest < x[i] ? x[i] : largest;
  return largest;
}

LW_INLINE float sum_exp(const float* x, float largest, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += exp_non_positive(x[i] - largest);
  return sum;
}

LW_INLINE float store_exp(float* e, const float* x, float largest, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = exp_non_positive(x[i] - largest);
    e[i] = value;
    sum += value;
  }
  return sum;
}

LW_INLINE void multiply(float* x, float factor, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace

LW_SIMD ClassLoss softmax_cross_entropy(float* dlogits, const float* logits,
                                        const std::int32_t* labels, std::int64_t batch,
                                        std::int64_t classes) {
  ClassLoss result;
  if (batch == 0) return result;
  const float share = 1.0f / static_cast<float>(batch);
  double sum_of_losses = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const float* row = logits + b * classes;
    const std::int64_t label = labels[b];
    LW_CHECK(label >= 0 && label < classes, label, classes, b);
    const float largest = max_of(row, classes);
    float sum = 0;
    if (dlogits) {
      float* gradient = dlogits + b * classes;
      sum = store_exp(gradient, row, largest, classes);
      multiply(gradient, share / sum, classes);
      gradient[label] -= share;
    } else {
      sum = sum_exp(row, largest, classes);
    }
    sum_of_losses +=
        std::log(static_cast<double>(sum)) + (static_cast<double>(largest) - row[label]);
    result.correct += std::find(row, row + classes, largest) - row == label;
  }
  result.loss = sum_of_losses / static_cast<double>(batch);
  return result;
}

}  // namespace leeway::kernels
