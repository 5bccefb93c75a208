#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

namespace {

constexpr int kTile = 32, kRowsAtATime = kThreads / kTile;

/// y (batch, columns, rows) = x (batch, rows, columns), transposed by tiles in shared memory, so
/// that reads and writes follow the rows. A tile's rows have one extra word, which puts a column
/// into different banks.
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(float* y, const float* x, std::int64_t batch, std::int64_t rows,
                     std::int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];
  const int column = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const std::int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  for (std::int64_t i = blockIdx.x; i < batch * down * across; i += gridDim.x) {
    const auto [matrix_down, right] = divide(i, across);
    const auto [matrix, below] = divide(matrix_down, down);
    const std::int64_t top = below * kTile, left = right * kTile;
    const std::int64_t start = matrix * rows * columns;
    for (int r = row; r < kTile; r += kRowsAtATime)
      if (top + r < rows && left + column < columns)
        tile[r][column] = x[start + (top + r) * columns + left + column];
    __syncthreads();
    for (int r = row; r < kTile; r += kRowsAtATime)
      if (left + r < columns && top + column < rows)
        y[start + (left + r) * rows + top + column] = tile[column][r];
    __syncthreads();
  }
}

void transpose(On on, float* y, const float* x, std::int64_t batch, std::int64_t rows,
               std::int64_t columns) {
  if (batch * rows * columns == 0) return;
  const std::int64_t tiles = batch * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  launch(on, blocks_for(tiles, 1), kThreads, transpose_kernel, y, x, batch, rows, columns);
}

}  // namespace

void to_channels_last(On on, float* y, const float* x, std::int64_t batch, std::int64_t channels,
                      std::int64_t pixels) {
  transpose(on, y, x, batch, channels, pixels);
}

void to_channels_first(On on, float* y, const float* x, std::int64_t batch, std::int64_t channels,
                       std::int64_t pixels) {
  transpose(on, y, x, batch, pixels, channels);
}

}  // namespace leeway::kernels::cuda
