#pragma once
// linear: y = x W^T + b, with W (O, I) as in PyTorch. B batch, I inputs, O outputs.
//
// A parameter is given as one or more slices of its rows, in order; W and b may be split at
// different rows. A split changes results only by rounding.
#include <cstdint>
#include <span>

#include "kernels/pack_form.hpp"
#include "kernels/precision.hpp"
#include "tensor/tensor.hpp"

namespace leeway::kernels {

using ConstSlices = std::span<const RowSlice<const float>>;
using Slices = std::span<const RowSlice<float>>;

struct LinearShape {
  std::int64_t batch = 0, inputs = 0, outputs = 0;  // B, I, O
  Precision precision = Precision::fp32;  // fp32 or tf32; for the others see linear_half.hpp
};

/// y (B, O) = x (B, I) W^T + b. weight: (O, I); bias: (O), or no slices for no bias.
void linear_forward(float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape);

/// dx (B, I) = dy W, unless dx is null; dweight (O, I) = dy^T x; dbias (O) = sum of dy over B,
/// unless it has no slices. dy: (B, O). With B = 0 the parameters' gradients are zero. If dweight
/// has no slices, only dx is computed; no result depends on which others are requested.
void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                     ConstSlices weight, const LinearShape& shape);

/// sum (columns) = sum of the rows of x (rows, columns), which are `leading` floats apart.
void column_sums(float* sum, const float* x, std::int64_t rows, std::int64_t columns,
                 std::int64_t leading);

}  // namespace leeway::kernels
