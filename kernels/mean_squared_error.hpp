#pragma once
// mean_squared_error: the loss for regression.
#include <cstdint>

namespace leeway::kernels {

/// Returns the mean of (y - t)^2 over all elements, like PyTorch's MSELoss; 0 if count is 0. dy =
/// scale * gradient of that mean, 2 (y - t) / count, unless null. dy, y, t: (count) with count = B
/// * O; dy may be y.
double mean_squared_error(float* dy, const float* y, const float* t, std::int64_t count,
                          float scale = 1);

}  // namespace leeway::kernels
