#pragma once
// linear: y = x W^T + b, with W as PyTorch keeps it, (O, I). B batch, I inputs, O outputs.
//
// A parameter is given as its rows, in order, in one slice or several; W and b may be cut at
// different rows. How it is cut changes results by rounding at most.
#include <cstdint>
#include <span>

#include "tensor/tensor.hpp"

namespace leeway::kernels {

using ConstSlices = std::span<const RowSlice<const float>>;
using Slices = std::span<const RowSlice<float>>;

struct LinearShape {
  std::int64_t batch = 0, inputs = 0, outputs = 0;  // B, I, O
};

/// y (B, O) = x (B, I) W^T + b. weight: (O, I); bias: (O), or no slices for no bias.
void linear_forward(float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape);

/// dx (B, I) = dy W, unless dx is null; dweight (O, I) = dy^T x; dbias (O) = sum of dy over B,
/// unless it has no slices. dy: (B, O). With B = 0 the parameters' gradients are zero. dweight
/// without slices: dx alone; each of the results is the same, whichever of them are asked for.
void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                     ConstSlices weight, const LinearShape& shape);

}  // namespace leeway::kernels
