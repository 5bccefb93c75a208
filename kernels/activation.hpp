#pragma once
// activation: gelu, tanh and sigmoid, element by element. (relu has a file of its own.) The
// formulas are functors that the CPU and the GPU share.
#include <cstdint>

namespace leeway::kernels {

/// gelu: x * Phi(x), with Phi the normal distribution's, not its tanh approximation (Hendrycks and
/// Gimpel 2016); tanh; sigmoid: 1 / (1 + exp(-x)).
enum class Activation : std::uint8_t { gelu, tanh, sigmoid };

/// y = f(x). y, x: (count); y may be x.
void activation_forward(Activation kind, float* y, const float* x, std::int64_t count);

/// dx = dy * f'. `kept` is x for gelu and y for tanh and sigmoid: (count). dx may be dy.
void activation_backward(Activation kind, float* dx, const float* dy, const float* kept,
                         std::int64_t count);

}  // namespace leeway::kernels
