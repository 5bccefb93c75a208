#pragma once
// Loops over the columns of (R, C) floats at full vector width, even for few columns. batch_norm
// and layer_norm share them.
//
// Columns are processed in strips of at most kStrip, whose sums fit on the stack. If C is small,
// several rows are folded into one wide row, whose element j belongs to column j % C; leftover rows
// are processed separately.
#include <algorithm>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

inline constexpr std::int64_t kStrip = 256;

/// Rows of `width` floats, `stride` floats apart; the first begins at element `begin`.
struct RowRange {
  std::int64_t begin, rows, width, stride;
};

/// Columns [first, first + columns): wide rows of `fold` rows each, and the leftover rows.
struct Strip {
  std::int64_t first, columns, fold;
  RowRange wide, rest;
};

LW_INLINE std::int64_t fold_of(std::int64_t columns) {
  return columns >= kStrip / 4 ? 1 : kStrip / 2 / columns;
}

/// Calls f(strip) for the strips of (rows, columns).
template <class F>
LW_INLINE void for_each_strip(std::int64_t rows, std::int64_t columns, F f) {
  if (columns == 0) return;
  const std::int64_t fold = fold_of(columns), wide_rows = rows / fold;
  for (std::int64_t first = 0; first < columns; first += kStrip) {
    const std::int64_t width = std::min(kStrip, columns - first);
    const std::int64_t folded = wide_rows * fold;
    f(Strip{first, width, fold, RowRange{first, wide_rows, width * fold, columns * fold},
            RowRange{folded * columns + first, rows - folded, width, columns}});
  }
}

/// Calls f(begin, rows) for blocks of rows that stay in the cache between two passes and are small
/// enough to be summed in float.
template <class F>
LW_INLINE void for_each_block(const RowRange& range, F f) {
  constexpr std::int64_t kRows = 32;
  for (std::int64_t row = 0; row < range.rows; row += kRows)
    f(range.begin + row * range.stride, std::min(kRows, range.rows - row));
}

/// wide (columns * fold) = x (columns), repeated `fold` times.
LW_INLINE void repeat(float* wide, const float* x, const Strip& strip) {
  for (std::int64_t j = 0; j < strip.columns * strip.fold; j += strip.columns)
    for (std::int64_t c = 0; c < strip.columns; ++c) wide[j + c] = x[c];
}

}  // namespace leeway::kernels
