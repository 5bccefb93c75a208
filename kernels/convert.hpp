#pragma once
// convert: numbers of one type to another, in bulk.
#include <cstdint>

#include "tensor/dtype.hpp"

namespace leeway::kernels {

/// to (count, type `to_type`) = from (count, type `from_type`), by way of f32; copied when the
/// types are the same. Rounds to nearest, ties to even; what is too large for an integer type
/// becomes its largest value, NaN becomes 0 there. bf16 and f16 keep NaN and infinities. The arrays
/// do not overlap.
void convert(void* to, DType to_type, const void* from, DType from_type, std::int64_t count);

}  // namespace leeway::kernels
