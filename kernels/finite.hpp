#pragma once
// find_non_finite: finds the first NaN or infinity, at the speed of reading memory.
#include <cstdint>

namespace leeway::kernels {

/// Index of the first element that is NaN or infinite, or -1. x: (count).
std::int64_t find_non_finite(const float* x, std::int64_t count);

}  // namespace leeway::kernels
