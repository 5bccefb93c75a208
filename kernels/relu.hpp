#pragma once
// relu: max(x, 0), where NaN stays NaN, so that divergence is detected. oneDNN's relu turns NaN
// into 0, so it is not fused into the matrix product; this pass costs 0.5% of a training step.
#include <cstdint>

namespace leeway::kernels {

/// y = max(x, 0). y, x: (count); y may be x.
void relu_forward(float* y, const float* x, std::int64_t count);

/// dx = dy where y > 0, else 0. dx, dy, y: (count); dx may be dy. y is the output of relu_forward.
void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count);

}  // namespace leeway::kernels
