#pragma once
// half_cosine: a value that moves smoothly from one level to another.
#include <cmath>
#include <numbers>

namespace leeway {

/// `from` at share 0, `to` at share 1.
inline double half_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace leeway
