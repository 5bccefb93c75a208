#pragma once
// Operands of products in bf16 and fp16: their type, and how the CPU rounds and reads them.
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.hpp"
#include "tensor/precision.hpp"

namespace leeway::kernels {

/// The type to which operands are rounded: bf16 or f16. Requires is_half(precision).
constexpr DType half_type(Precision precision) {
  return precision == Precision::fp16 ? DType::f16 : DType::bf16;
}

/// True if this processor multiplies bf16 (AVX512_BF16, or AMX). Without it operands are rounded to
/// bf16 and multiplied in fp32, which gives the same results to rounding, but no speed. Operands in
/// fp16 are always multiplied in fp32.
bool multiplies_bf16();

/// The type in which operands are stored for a product: f32, or bf16 if it is multiplied.
DType operand_type(Precision precision);

/// to (count, of type f32 or bf16) = from, rounded to half_type(precision): to nearest, ties to
/// even. `to` may be `from` if the type is f32. Requires is_half(precision), and type bf16 only for
/// precision bf16.
void round_operands(std::byte* to, DType type, const float* from, std::int64_t count,
                    Precision precision);

}  // namespace leeway::kernels
