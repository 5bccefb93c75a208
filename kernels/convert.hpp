#pragma once
// convert: converts arrays between number types.
#include <cstdint>

#include "tensor/dtype.hpp"

namespace leeway::kernels {

/// to (count, type `to_type`) = from (count, type `from_type`), by way of f32; copied if the types
/// are equal. Rounds to nearest, ties to even. Integer types saturate, and NaN becomes 0; bf16 and
/// f16 keep NaN and infinities. The arrays do not overlap.
void convert(void* to, DType to_type, const void* from, DType from_type, std::int64_t count);

}  // namespace leeway::kernels
