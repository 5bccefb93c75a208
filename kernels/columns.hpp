#pragma once
// Loops over the columns of (R, C) floats at full vector width, however few columns there are: what
// batch_norm and layer_norm share.
//
// The columns are taken in strips of at most kStrip, whose sums live on the stack. Of few columns,
// several rows side by side count as one wide row: element j of it belongs to column j % C, and the
// rows that are left over are a narrow part of their own.
#include <algorithm>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

inline constexpr std::int64_t kStrip = 256;

/// Rows of one width, `stride` floats apart; the first begins at the array's element `begin`.
struct Part {
  std::int64_t begin, rows, width, stride;
};

/// Columns [first, first + columns), as `fold` rows side by side, then those left over.
struct Strip {
  std::int64_t first, columns, fold;
  Part wide, left;
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
    const std::int64_t taken = wide_rows * fold;
    f(Strip{first, width, fold, Part{first, wide_rows, width * fold, columns * fold},
            Part{taken * columns + first, rows - taken, width, columns}});
  }
}

/// Calls f(begin, rows) for blocks of a part's rows that stay in the cache between two passes, and
/// are few enough to be summed in float.
template <class F>
LW_INLINE void for_each_block(const Part& part, F f) {
  constexpr std::int64_t kRows = 32;
  for (std::int64_t row = 0; row < part.rows; row += kRows)
    f(part.begin + row * part.stride, std::min(kRows, part.rows - row));
}

/// wide (columns * fold) = x (columns), once a folded row.
LW_INLINE void spread(float* wide, const float* x, const Strip& strip) {
  for (std::int64_t j = 0; j < strip.columns * strip.fold; j += strip.columns)
    for (std::int64_t c = 0; c < strip.columns; ++c) wide[j + c] = x[c];
}

}  // namespace leeway::kernels
