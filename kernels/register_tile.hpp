#pragma once
// multiply and transpose: products and transposes of small matrices, computed in registers, for
// kernels whose products are too small for a call of gemm.
//
// Rows are whole vectors; callers pad them with zeros.
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

inline constexpr std::int64_t kLanes = 16;
using Lanes [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(4), gnu::may_alias]] = float;

LW_INLINE Lanes load_lanes(const float* from) {
  return *reinterpret_cast<const Lanes*>(from);
}
LW_INLINE void store_lanes(float* to, Lanes value) {
  *reinterpret_cast<Lanes*>(to) = value;
}

/// The left factor: element (i, k) is data[i * row + k * step].
struct LeftFactor {
  const float* data;
  std::int64_t row, step;
};

/// C (m, n) = or += A (m, k) B (k, n): m a multiple of 8, n of kLanes.
struct TileProduct {
  std::int64_t m, n, k;
  bool add;
};

inline constexpr int kTileRows = 8;

template <int V>
LW_INLINE void multiply_tile(float* c, std::int64_t ldc, const LeftFactor& a, const float* b,
                             std::int64_t ldb, std::int64_t k, bool add) {
  Lanes sums[kTileRows][V];
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sums[i][v] = add ? load_lanes(c + i * ldc + v * kLanes) : Lanes{};
  for (std::int64_t t = 0; t < k; ++t) {
    Lanes row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = load_lanes(b + t * ldb + v * kLanes);
    const float* from = a.data + t * a.step;
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[i][v] += from[i * a.row] * row[v];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store_lanes(c + i * ldc + v * kLanes, sums[i][v]);
}

LW_INLINE void multiply(const TileProduct& of, float* c, std::int64_t ldc, const LeftFactor& a,
                        const float* b, std::int64_t ldb) {
  for (std::int64_t i = 0; i < of.m; i += kTileRows) {
    const LeftFactor rows{a.data + i * a.row, a.row, a.step};
    float* const out = c + i * ldc;
    std::int64_t j = 0;
    for (; j + 2 * kLanes <= of.n; j += 2 * kLanes)
      multiply_tile<2>(out + j, ldc, rows, b + j, ldb, of.k, of.add);
    if (j < of.n) multiply_tile<1>(out + j, ldc, rows, b + j, ldb, of.k, of.add);
  }
}

/// to (kLanes, kLanes) = transpose of from (kLanes, kLanes): four rounds that interleave row i with
/// row i + 8.
LW_INLINE void transpose(float* to, std::int64_t to_row, const float* from, std::int64_t from_row) {
  Lanes rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = load_lanes(from + i * from_row);
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    Lanes next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      const Lanes one = rows[i], other = rows[i + kLanes / 2];
      next[2 * i] = __builtin_shufflevector(one, other, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                            22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(one, other, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store_lanes(to + i * to_row, rows[i]);
}

}  // namespace leeway::kernels
