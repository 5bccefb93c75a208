#pragma once
// linear_half: linear (see linear.hpp), with operands that are rounded to 16 bits and sums in f32.
//
// The precision of the shape is bf16 or fp16 and names the type of the operands. Weights are
// rounded once per version; x and dy are rounded into scratch memory at each call.
#include <cstddef>

#include "kernels/linear.hpp"

namespace leeway::kernels {

/// The form of the rounded weights. Requires is_half(shape.precision), like all functions here.
PackForm linear_half_form(const LinearShape& shape);
/// packed (O, I) = the rounded weights.
void linear_half_pack(std::byte* packed, ConstSlices weight, const LinearShape& shape);
/// Bytes of 64-byte aligned scratch for forward or backward, whichever needs more.
std::size_t linear_half_scratch_bytes(const LinearShape& shape);

/// y (B, O) = x (B, I) W^T + bias (O), unless bias is null.
void linear_half_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                         std::byte* scratch, const LinearShape& shape);

/// As linear_backward. dbias (O; may be null) is the sum of dy without rounding.
void linear_half_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                          const std::byte* packed, std::byte* scratch, const LinearShape& shape);

}  // namespace leeway::kernels
