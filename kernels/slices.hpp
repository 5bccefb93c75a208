#pragma once
// Parameters split by rows: checks, gather and scatter.
#include <algorithm>

#include "core/check.hpp"
#include "kernels/linear.hpp"

namespace leeway::kernels {

/// Throws unless the slices cover the rows [0, rows) in order and without a gap.
template <class Slice>
void check_rows(std::span<const Slice> slices, std::int64_t rows) {
  std::int64_t next = 0;
  for (const auto& slice : slices) {
    LW_CHECK(slice.first_row == next, slice.first_row, next);
    next += slice.rows;
  }
  LW_CHECK(next == rows, next, rows);
}

/// whole = the concatenated slices, of `row_floats` floats per row.
inline void gather_rows(float* whole, ConstSlices slices, std::int64_t row_floats) {
  for (const auto& slice : slices)
    std::copy_n(slice.data, slice.rows * row_floats, whole + slice.first_row * row_floats);
}

/// slices = their rows of `whole`.
inline void scatter_rows(Slices slices, const float* whole, std::int64_t row_floats) {
  for (const auto& slice : slices)
    std::copy_n(whole + slice.first_row * row_floats, slice.rows * row_floats, slice.data);
}

inline void zero_rows(Slices slices, std::int64_t row_floats) {
  for (const auto& slice : slices) std::fill_n(slice.data, slice.rows * row_floats, 0.0f);
}

}  // namespace leeway::kernels
