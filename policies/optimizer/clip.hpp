#pragma once
// clip_scale: the factor of a gradient whose norm is limited.
#include <cmath>

namespace leeway {

/// min(1, most / (norm + 1e-6)), as in PyTorch's clip_grad_norm_. `squares`: of the norm. NaN for a
/// norm that is NaN.
inline float clip_scale(double squares, double most) {
  const double scale = most / (std::sqrt(squares) + 1e-6);
  return scale >= 1 ? 1.0f : static_cast<float>(scale);
}

}  // namespace leeway
