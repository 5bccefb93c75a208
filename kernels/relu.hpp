#pragma once
// relu: max(x, 0), and NaN stays NaN, so that a diverged model is seen. (oneDNN's relu makes 0 of
// NaN, fused or not, which is why it is not fused into the matrix product: in place and in cache,
// this pass costs half a percent of a step.)
#include <cstdint>

namespace leeway::kernels {

/// y = max(x, 0). y, x: (count); y may be x.
void relu_forward(float* y, const float* x, std::int64_t count);

/// dx = dy where y > 0, else 0. dx, dy, y: (count); dx may be dy. y is the output of relu_forward.
void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count);

}  // namespace leeway::kernels
