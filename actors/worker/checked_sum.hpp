#pragma once
// checked_sum: the sum by which a checker compares the values of a block before and after encoding.
#include <cstdint>
#include <span>

#include "core/rng.hpp"

namespace leeway {

/// The sum of the values, each with its own weight from 0.5 to 1.5, so that values that change
/// places change the sum.
inline double checked_sum(std::span<const float> values) {
  double sum = 0;
  for (std::uint64_t i = 0; i < values.size(); ++i)
    sum += (0.5 + static_cast<double>(mix64(i) >> 11) * 0x1p-53) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace leeway
