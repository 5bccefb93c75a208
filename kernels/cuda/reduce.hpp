#pragma once
// Sums in a fixed order: over a warp, a block, and the rows of a matrix.
#include <cstdint>

#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

/// The sum over the warp, in every lane. All lanes take part.
template <class T>
__device__ T warp_sum(T value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// The sum over a block of kThreads, in thread 0. All threads take part.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T of_warp[kThreads / kWarp];
  value = warp_sum(value);
  __syncthreads();  // the results of the previous call have been read
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    value = 0;
    for (const T part : of_warp) value += part;
  }
  return value;
}

/// N sums that are computed together.
template <int N>
struct Sums {
  double of[N] = {};
  __device__ void add(const Sums& more) {
    for (int n = 0; n < N; ++n) of[n] += more.of[n];
  }
};

constexpr int kTileColumns = kWarp, kTileRows = kThreads / kWarp;

/// Block (x, y) sums 32 columns over the y-th section of rows: thread (c, r) sums every eighth row,
/// and the eight sums are added in order. With several sections, `partial` (sections, N, columns)
/// holds the result of each.
template <int N, class Term, class Finish>
__global__ void __launch_bounds__(kThreads)
    reduce_sections_kernel(std::int64_t rows, std::int64_t columns, std::int64_t section_rows,
                           double* partial, Term term, Finish finish) {
  __shared__ double tile[kTileRows][N][kTileColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTileColumns + threadIdx.x;
  const std::int64_t begin = blockIdx.y * section_rows;
  const std::int64_t end = min(begin + section_rows, rows);
  Sums<N> sums;
  if (column < columns)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kTileRows)
      sums.add(term(row, column));
  for (int n = 0; n < N; ++n) tile[threadIdx.y][n][threadIdx.x] = sums.of[n];
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int r = 1; r < kTileRows; ++r)
    for (int n = 0; n < N; ++n) sums.of[n] += tile[r][n][threadIdx.x];
  if (gridDim.y == 1) {
    finish(column, sums);
    return;
  }
  for (int n = 0; n < N; ++n)
    partial[(static_cast<std::int64_t>(blockIdx.y) * N + n) * columns + column] = sums.of[n];
}

/// One warp per column adds up the sections.
template <int N, class Finish>
__global__ void __launch_bounds__(kThreads)
    finish_columns_kernel(std::int64_t columns, int sections, const double* partial,
                          Finish finish) {
  const std::int64_t column = first_index() / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (column >= columns) return;  // the whole warp
  Sums<N> sums;
  for (int section = lane; section < sections; section += kWarp)
    for (int n = 0; n < N; ++n)
      sums.of[n] += partial[(static_cast<std::int64_t>(section) * N + n) * columns + column];
  for (int n = 0; n < N; ++n) sums.of[n] = warp_sum(sums.of[n]);
  if (lane == 0) finish(column, sums);
}

/// Calls finish(column, sum over rows of term(row, column)) once for every column, also if there
/// are no rows. term returns Sums<N>.
template <int N, class Term, class Finish>
void reduce_columns(On on, std::int64_t rows, std::int64_t columns, Term term, Finish finish) {
  constexpr std::int64_t kBlocks = 132 * 8, kFewRows = 256;
  // With several sections there are at most kBlocks blocks, each with N sums for 32 columns.
  static_assert(kBlocks * kTileColumns * N * sizeof(double) <= On::kScratchBytes);
  if (columns <= 0) return;
  const std::int64_t tiles = (columns + kTileColumns - 1) / kTileColumns;
  std::int64_t sections = std::clamp<std::int64_t>(kBlocks / tiles, 1, kBlocks);
  sections = std::min(sections, (rows + kFewRows - 1) / kFewRows);
  sections = std::max<std::int64_t>(sections, 1);
  const std::int64_t section_rows = (rows + sections - 1) / sections;
  auto* const partial = reinterpret_cast<double*>(on.scratch);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(sections));
  launch(on, grid, dim3(kTileColumns, kTileRows), reduce_sections_kernel<N, Term, Finish>, rows,
         columns, section_rows, partial, term, finish);
  if (sections == 1) return;
  const auto blocks = static_cast<unsigned>((columns * kWarp + kThreads - 1) / kThreads);
  launch(on, blocks, kThreads, finish_columns_kernel<N, Finish>, columns,
         static_cast<int>(sections), partial, finish);
}

}  // namespace leeway::kernels::cuda
