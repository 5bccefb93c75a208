#pragma once
// channels: transposes images between channels first (data sets, PyTorch) and channels last (the
// kernels). B batch, C channels, S = H * W pixels.
#include <cstdint>

namespace leeway::kernels {

/// y (B, S, C) = x (B, C, S). y and x do not overlap.
void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                      std::int64_t pixels);
/// y (B, C, S) = x (B, S, C). y and x do not overlap.
void to_channels_first(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                       std::int64_t pixels);

}  // namespace leeway::kernels
