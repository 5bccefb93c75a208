#pragma once
// mean_squared_error: the loss for numbers.
#include <cstdint>

namespace leeway::kernels {

/// Returns the mean of (y - t)^2 over all B * O numbers, as PyTorch's MSELoss does; 0 for none.
/// dy = gradient of that mean, 2 (y - t) / (B O), unless null. dy, y, t: (count) with count = B *
/// O; dy may be y.
double mean_squared_error(float* dy, const float* y, const float* t, std::int64_t count);

}  // namespace leeway::kernels
