#pragma once
// row_of: the row of a table that a token names.
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// The row, or -1 if the token is invalid.
LW_INLINE std::int64_t row_of(float token, std::int64_t vocabulary) {
  if (!(token >= 0 && token < static_cast<float>(vocabulary))) return -1;  // NaN too
  const auto row = static_cast<std::int64_t>(token);
  return static_cast<float>(row) == token && row < vocabulary ? row : -1;
}

}  // namespace leeway::kernels
