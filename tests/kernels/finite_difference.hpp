#pragma once
// Finite differences, to check the backward pass of a reference.
#include <cmath>
#include <vector>

#include "tests/kernels/support.hpp"

namespace leeway::test {

using Doubles = std::vector<double>;

inline Doubles to_doubles(const Floats& values) {
  return {values.begin(), values.end()};
}

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Error of `gradient` against the slope of loss(x) along a random direction, relative to 1 + the
/// slope. The central difference is exact for polynomials of degree 2.
template <class Loss>
double gradient_error(Loss loss, const Doubles& x, const Doubles& gradient, Rng& rng) {
  const double step = 1e-4;
  const Doubles direction = to_doubles(random_floats(rng, static_cast<std::int64_t>(x.size())));
  Doubles ahead = x, behind = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ahead[i] += step * direction[i];
    behind[i] -= step * direction[i];
  }
  const double slope = (loss(ahead) - loss(behind)) / (2 * step);
  return std::abs(dot(gradient, direction) - slope) / (1 + std::abs(slope));
}

}  // namespace leeway::test
