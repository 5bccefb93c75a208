#pragma once
// sum_of_squares: the square of a vector's norm, in double.
#include <cstdint>

namespace leeway::kernels {

/// Sum of x[i]^2. x: (count).
double sum_of_squares(const float* x, std::int64_t count);

}  // namespace leeway::kernels
