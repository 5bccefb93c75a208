#pragma once
// update: computes new weights and optimizer state from a gradient, in one pass.
//
// A formula is a functor over one element with constants that policies/optimizer computes once per
// update. Plain stores are enough: in place, an update runs at the speed of memory, and streaming
// stores only help (1.4 times, out of place) beyond the last-level cache, while readers want the
// new weights in the cache.
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// Limits of a gradient: its elements times `scale`, then limited to -limit..limit.
struct Clipping {
  static constexpr float kNoLimit = std::numeric_limits<float>::infinity();
  float scale = 1;
  float limit = kNoLimit;

  LW_INLINE bool clips() const { return scale != 1 || limit != kNoLimit; }
  LW_INLINE float of(float element) const {
    const float scaled = scale * element;
    return scaled > limit ? limit : scaled < -limit ? -limit : scaled;
  }
};

/// Arrays of `count` floats. Each output is its own input or overlaps no input.
struct UpdateBuffers {
  static constexpr int kMaxSlots = 4;  // formulas have up to three
  std::int64_t count = 0;
  float* w_out = nullptr;
  const float* w = nullptr;
  float* state_out[kMaxSlots] = {};
  const float* state[kMaxSlots] = {};
  const float* g = nullptr;
  const float* pulled = nullptr;  // the weights that g was computed on; null: unknown
  Clipping clipping;              // of g

  /// The floats [begin, end).
  UpdateBuffers range(std::int64_t begin, std::int64_t end) const;
};

/// w -= rate * (g + decay * w)
struct SgdFormula {
  static constexpr int kSlots = 0;
  float rate, decay;
  LW_INLINE void operator()(float& w, float g) const { w -= rate * (g + decay * w); }
};

/// m = keep * m + gain * g'; w -= rate * m; with g' = g + decay * w
struct MomentumFormula {
  static constexpr int kSlots = 1;
  float rate, decay, keep, gain;
  LW_INLINE void operator()(float& w, float& m, float g) const {
    m = keep * m + gain * (g + decay * w);
    w -= rate * m;
  }
};

/// m = keep * m; w -= rate * m + direct * g'; m += gain * g'; with g' = g + decay * w
struct OrderedMomentumFormula {
  static constexpr int kSlots = 1;
  float rate, decay, keep, gain, direct;
  LW_INLINE void operator()(float& w, float& m, float g) const {
    const float full = g + decay * w;
    m = keep * m;
    w -= rate * m + direct * full;
    m += gain * full;
  }
};

/// m = keep * m + gain * g'; w -= rate * (gain * g' + keep * m); with g' = g + decay * w
struct NesterovFormula {
  static constexpr int kSlots = 1;
  float rate, decay, keep, gain;
  LW_INLINE void operator()(float& w, float& m, float g) const {
    const float push = gain * (g + decay * w);
    m = keep * m + push;
    w -= rate * (push + keep * m);
  }
};

/// b += gain * g'; m = keep * m + mean * b; w -= direct * g' + rate * m; b = left * b; with g' = g
/// + decay * w
struct DelayedNesterovFormula {
  static constexpr int kSlots = 2;
  float decay, gain, direct, keep, mean, rate, left;
  LW_INLINE void operator()(float& w, float& m, float& b, float g) const {
    const float full = g + decay * w;
    const float sum = b + gain * full;
    m = keep * m + mean * sum;
    w -= direct * full + rate * m;
    b = left * sum;
  }
};

/// m = keep1 * m + gain1 * g'; v = keep2 * v + gain2 * g'^2; w = shrink * w - rate * m / (scale *
/// sqrt(v) + epsilon); with g' = g + decay * w
struct AdamFormula {
  static constexpr int kSlots = 2;
  float rate, decay, shrink, keep1, gain1, keep2, gain2, scale, epsilon;
  LW_INLINE void operator()(float& w, float& m, float& v, float g) const {
    move_moments(w, m, v, g);
    step(w, m, v);
  }
  LW_INLINE void move_moments(float w, float& m, float& v, float g) const {
    const float full = g + decay * w;
    m = keep1 * m + gain1 * full;
    v = keep2 * v + gain2 * (full * full);
  }
  LW_INLINE void step(float& w, float m, float v) const {
    w = shrink * w - rate * m / (scale * std::sqrt(v) + epsilon);
  }
};

/// Adam's step, divided by the largest v so far: u = max(u, v); w = shrink * w - rate * m / (scale
/// * sqrt(u) + epsilon)
struct AmsGradFormula : AdamFormula {
  static constexpr int kSlots = 3;
  LW_INLINE void operator()(float& w, float& m, float& v, float& u, float g) const {
    move_moments(w, m, v, g);
    u = v > u ? v : u;
    step(w, m, u);
  }
};

/// Adam's moments; w = shrink * w - (gradient_rate * g' + moment_rate * m) / (scale * sqrt(v) +
/// epsilon); with g' = g + decay * w
struct NAdamFormula {
  static constexpr int kSlots = 2;
  float gradient_rate, moment_rate, decay, shrink, keep1, gain1, keep2, gain2, scale, epsilon;
  LW_INLINE void operator()(float& w, float& m, float& v, float g) const {
    const float full = g + decay * w;
    m = keep1 * m + gain1 * full;
    v = keep2 * v + gain2 * (full * full);
    w = shrink * w - (gradient_rate * full + moment_rate * m) / (scale * std::sqrt(v) + epsilon);
  }
};

/// c = mix * m + (1 - mix) * g; w = shrink * w - rate * sign(c); m = keep * m + gain * g
struct LionFormula {
  static constexpr int kSlots = 1;
  float rate, shrink, mix, keep, gain;
  LW_INLINE void operator()(float& w, float& m, float g) const {
    const float sum = mix * m + (1 - mix) * g;
    const float sign = sum > 0 ? 1.0f : sum < 0 ? -1.0f : sum;  // NaN stays NaN
    w = shrink * w - rate * sign;
    m = keep * m + gain * g;
  }
};

/// s += weight * g'^2; w -= rate * g' / (sqrt(s) + epsilon); with g' = g + decay * w
struct AdaGradFormula {
  static constexpr int kSlots = 1;
  float rate, decay, weight, epsilon;
  LW_INLINE void operator()(float& w, float& s, float g) const {
    const float full = g + decay * w;
    s += weight * (full * full);
    w -= rate * full / (std::sqrt(s) + epsilon);
  }
};

/// w += g
struct SumFormula {
  static constexpr int kSlots = 0;
  LW_INLINE void operator()(float& w, float g) const { w += g; }
};

/// w = g
struct AssignFormula {
  static constexpr int kSlots = 0;
  LW_INLINE void operator()(float& w, float g) const { w = g; }
};

/// w += gain * (g - w): a running average, for untrained statistics.
struct AverageFormula {
  static constexpr int kSlots = 0;
  float gain;
  LW_INLINE void operator()(float& w, float g) const { w += gain * (g - w); }
};

using UpdateFormula =
    std::variant<SgdFormula, MomentumFormula, OrderedMomentumFormula, NesterovFormula,
                 DelayedNesterovFormula, AdamFormula, AmsGradFormula, NAdamFormula, LionFormula,
                 AdaGradFormula, SumFormula, AssignFormula, AverageFormula>;

void update(const UpdateBuffers& buffers, const UpdateFormula& formula);

}  // namespace leeway::kernels
