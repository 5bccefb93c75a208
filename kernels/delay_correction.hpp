#pragma once
// correct_delay: corrects a gradient that was computed on older weights, before its update.
//
// A formula is a functor over one element, as in update.hpp. Without a difference between the
// weights, every formula returns the gradient unchanged, to the bit.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/simd.hpp"
#include "kernels/update.hpp"

namespace leeway::kernels {

/// Arrays of `count` floats. Each output is its own input or overlaps no input.
struct DelayBuffers {
  std::int64_t count = 0;
  float* g_out = nullptr;
  const float* g = nullptr;
  const float* w = nullptr;       // the present weights
  const float* pulled = nullptr;  // the weights that the gradient was computed on
  const float* step = nullptr;    // what the optimizer multiplies by its rate; null: the gradient
  float* mean_out = nullptr;      // a running mean of squares, for formulas with kMean
  const float* mean = nullptr;
  Clipping clipping;  // of g, before the correction
};

/// mean = keep * mean + gain * step^2;
/// g / (1 + |w - pulled| / c), with c = scale * sqrt(mean) + least
struct GapFormula {
  static constexpr bool kMean = true;
  float keep, gain, scale, least;
  LW_INLINE float operator()(float g, float difference, float step, float& mean) const {
    mean = keep * mean + gain * (step * step);
    const float usual = scale * std::sqrt(mean) + least;
    return g * (usual / (usual + std::fabs(difference)));
  }
};

/// g + lambda * g^2 * (w - pulled)
struct CompensationFormula {
  static constexpr bool kMean = false;
  float lambda;
  LW_INLINE float operator()(float g, float difference, float /*step*/, float& /*mean*/) const {
    return g + lambda * (g * g) * difference;
  }
};

/// mean = keep * mean + gain * g^2; g + lambda / sqrt(mean + epsilon) * g^2 * (w - pulled)
struct AdaptiveCompensationFormula {
  static constexpr bool kMean = true;
  float lambda, keep, gain, epsilon;
  LW_INLINE float operator()(float g, float difference, float /*step*/, float& mean) const {
    mean = keep * mean + gain * (g * g);
    return g + lambda / std::sqrt(mean + epsilon) * (g * g) * difference;
  }
};

/// g + w - pulled: the distance from w to the weights pulled - g
struct DistanceFormula {
  static constexpr bool kMean = false;
  LW_INLINE float operator()(float g, float difference, float /*step*/, float& /*mean*/) const {
    return g + difference;
  }
};

using DelayFormula =
    std::variant<GapFormula, CompensationFormula, AdaptiveCompensationFormula, DistanceFormula>;

void correct_delay(const DelayBuffers& buffers, const DelayFormula& formula);

}  // namespace leeway::kernels
