#pragma once
// Operands of products in bf16 on the CPU.
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.hpp"
#include "tensor/precision.hpp"

namespace leeway::kernels {

/// True if this processor multiplies bf16 (AVX512_BF16, or AMX). Without it operands are rounded to
/// bf16 and multiplied in fp32, which gives the same results to rounding, but no speed.
bool multiplies_bf16();

/// The type in which operands are stored for a product: f32, or bf16 if it is multiplied.
DType operand_type(Precision precision);

/// to (count, of type f32 or bf16) = from, rounded to bf16 (nearest, ties to even). `to` may be
/// `from` if the type is f32.
void round_to_bf16(std::byte* to, DType type, const float* from, std::int64_t count);

}  // namespace leeway::kernels
