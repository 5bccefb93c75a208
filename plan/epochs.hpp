#pragma once
// The samples of a number of epochs.
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace leeway {

/// The samples that a run of `epochs`, which can be a fraction, trains of `size`: at least one.
inline std::int64_t samples_of_epochs(double epochs, std::int64_t size) {
  return std::max<std::int64_t>(1, std::llround(epochs * static_cast<double>(size)));
}

}  // namespace leeway
