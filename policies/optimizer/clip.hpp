#pragma once
// clip_scale: the factor of a gradient whose norm is limited.
namespace leeway {

/// min(1, most / (norm + 1e-6)), as in PyTorch's clip_grad_norm_. NaN for a norm that is NaN.
inline float clip_scale(double norm, double most) {
  const double scale = most / (norm + 1e-6);
  return scale >= 1 ? 1.0f : static_cast<float>(scale);
}

}  // namespace leeway
