#pragma once
// positions: adds a learned position embedding to the features of each token.
//
// B batch, T tokens, D features.
#include <cstdint>

#include "kernels/linear.hpp"

namespace leeway::kernels {

struct PositionsShape {
  std::int64_t batch = 0, tokens = 0, features = 0;  // B, T, D
};

/// y (B, T, D) = x + weight (T, D). y may be x.
void positions_forward(float* y, const float* x, ConstSlices weight, const PositionsShape& shape);

/// dweight (T, D) = sum of dy (B, T, D) over the batch. The gradient of x is dy itself.
void positions_backward(Slices dweight, const float* dy, const PositionsShape& shape);

}  // namespace leeway::kernels
