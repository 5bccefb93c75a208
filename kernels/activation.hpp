#pragma once
// activation: gelu, tanh and sigmoid of each element. The CPU and the GPU share the formulas.
#include <cstdint>

namespace leeway::kernels {

/// gelu: x * Phi(x), exact and not by the tanh approximation (Hendrycks and Gimpel 2016); sigmoid:
/// 1 / (1 + exp(-x)).
enum class Activation : std::uint8_t { gelu, tanh, sigmoid };

/// y = f(x). y, x: (count); y may be x.
void activation_forward(Activation kind, float* y, const float* x, std::int64_t count);

/// dx = dy * f'. `kept` is x for gelu and y for tanh and sigmoid: (count). dx may be dy.
void activation_backward(Activation kind, float* dx, const float* dy, const float* kept,
                         std::int64_t count);

}  // namespace leeway::kernels
