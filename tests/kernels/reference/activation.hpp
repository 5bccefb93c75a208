#pragma once
// Reference: activations by the C library, in double precision.
#include <cmath>
#include <numbers>

#include "kernels/activation.hpp"

namespace leeway::test::reference {

inline double activation(kernels::Activation kind, double x) {
  switch (kind) {
    case kernels::Activation::gelu:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case kernels::Activation::tanh:
      return std::tanh(x);
    case kernels::Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return NAN;
}

/// The derivative at x.
inline double activation_slope(kernels::Activation kind, double x) {
  const double y = activation(kind, x);
  switch (kind) {
    case kernels::Activation::gelu:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case kernels::Activation::tanh:
      return 1 - y * y;
    case kernels::Activation::sigmoid:
      return y * (1 - y);
  }
  return NAN;
}

}  // namespace leeway::test::reference
