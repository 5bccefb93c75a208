#pragma once
// The formulas of activation.hpp as functors over one element: forward(x), and slope(kept), the
// derivative, where the kept value is x or y.
#include "kernels/math.hpp"

namespace leeway::kernels {

/// Keeps x.
struct GeluFormula {
  LW_INLINE float forward(float x) const { return x * normal(x).distribution; }
  LW_INLINE float slope(float x) const {
    const Normal at = normal(x);
    return at.distribution + x * at.density;
  }
};

/// Keeps y.
struct TanhFormula {
  LW_INLINE float forward(float x) const { return tanh(x); }
  LW_INLINE float slope(float y) const { return (1.0f - y) * (1.0f + y); }
};

/// Keeps y.
struct SigmoidFormula {
  LW_INLINE float forward(float x) const { return sigmoid(x); }
  LW_INLINE float slope(float y) const { return y * (1.0f - y); }
};

}  // namespace leeway::kernels
