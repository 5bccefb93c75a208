#pragma once
// The formula of sigmoid_cross_entropy.hpp for one element.
#include "kernels/math.hpp"

namespace leeway::kernels {

/// Loss and gradient of logit y for target t, not yet divided by the count.
struct SigmoidLoss {
  float loss, gradient;
  std::int32_t correct;  // 1 or 0
};

LW_INLINE SigmoidLoss sigmoid_loss(float y, float t) {
  const float e = exp_non_positive(-magnitude(y));
  const float positive = y < 0 ? 0.0f : y;  // NaN stays
  const float top = y < 0 ? e : 1.0f;
  const std::int32_t answer = y > 0 ? 1 : 0, truth = t > 0.5f ? 1 : 0;
  return {positive - y * t + log1p_of_fraction(e), top / (1.0f + e) - t, 1 - (answer ^ truth)};
}

}  // namespace leeway::kernels
