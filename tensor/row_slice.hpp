#pragma once
// RowSlice: consecutive rows of a parameter, or of its gradient.
#include <cstdint>

namespace leeway {

/// Rows [first_row, first_row + rows), contiguous and row-major. A parameter is one slice, or
/// several when placement splits it by rows.
template <class T>
struct RowSlice {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  T* data = nullptr;
};

}  // namespace leeway
