#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/embedding_formula.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

namespace {

/// A few slices of a list, small enough for a kernel's arguments.
template <class T>
struct Table {
  static constexpr int kSlices = 32;
  int count = 0;
  RowSlice<T> slice[kSlices];

  /// The floats of `row`, or null if no slice of this table holds it.
  __device__ T* find(std::int64_t row, std::int64_t features) const {
    for (int i = 0; i < count; ++i)
      if (row >= slice[i].first_row && row < slice[i].first_row + slice[i].rows)
        return slice[i].data + (row - slice[i].first_row) * features;
    return nullptr;
  }
};

/// Calls f(table) for consecutive tables that cover the list.
template <class T, class F>
void for_each_table(std::span<const RowSlice<T>> slices, F f) {
  for (std::size_t begin = 0; begin < slices.size(); begin += Table<T>::kSlices) {
    const auto part =
        slices.subspan(begin, std::min<std::size_t>(Table<T>::kSlices, slices.size() - begin));
    Table<T> table;
    table.count = static_cast<int>(part.size());
    std::copy(part.begin(), part.end(), table.slice);
    f(table);
  }
}

/// One block per token. The block of the first token that names a row sums dy over all tokens that
/// name it, in order. Requires that dweight is zero. Tokens are read kThreads at a time.
__global__ void __launch_bounds__(kThreads)
    backward_kernel(Table<float> dweight, const float* dy, const float* tokens,
                    EmbeddingShape shape) {
  __shared__ unsigned matches[kThreads / kWarp];
  const int thread = threadIdx.x;
  for (std::int64_t n = blockIdx.x; n < shape.tokens; n += gridDim.x) {
    const std::int64_t row = row_of(tokens[n], shape.vocabulary);
    float* const sum = row < 0 ? nullptr : dweight.find(row, shape.features);
    if (!sum) continue;  // the whole block
    const float token = tokens[n];
    bool came_before = false;
    for (std::int64_t m = thread; m < n && !came_before; m += kThreads)
      came_before = tokens[m] == token;
    if (__syncthreads_or(came_before)) continue;
    for (std::int64_t begin = n; begin < shape.tokens; begin += kThreads) {
      const bool same = begin + thread < shape.tokens && tokens[begin + thread] == token;
      const unsigned of_warp = __ballot_sync(0xffffffffu, same);
      __syncthreads();  // the previous matches have been used
      if (thread % kWarp == 0) matches[thread / kWarp] = of_warp;
      __syncthreads();
      for (int word = 0; word < kThreads / kWarp; ++word)
        for (unsigned left = matches[word]; left != 0; left &= left - 1) {
          const float* const from =
              dy + (begin + word * kWarp + __ffs(static_cast<int>(left)) - 1) * shape.features;
          for (std::int64_t d = thread; d < shape.features; d += kThreads) sum[d] += from[d];
        }
    }
  }
}

}  // namespace

void embedding_forward(On on, float* y, const float* tokens, ConstSlices weight,
                       const EmbeddingShape& shape) {
  check_rows(weight, shape.vocabulary);
  const std::int64_t features = shape.features, vocabulary = shape.vocabulary;
  bool first = true;
  for_each_table(weight, [&](const Table<const float>& table) {
    const bool write_nan = std::exchange(first, false);
    for_each(on, shape.tokens * features, [=] __device__(std::int64_t i) {
      const auto [n, d] = divide(i, features);
      const std::int64_t row = row_of(tokens[n], vocabulary);
      if (row < 0) {
        if (write_nan) y[i] = nanf("");
      } else if (const float* const from = table.find(row, features)) {
        y[i] = from[d];
      }
    });
  });
}

void embedding_backward(On on, Slices dweight, const float* dy, const float* tokens,
                        const EmbeddingShape& shape) {
  check_rows(dweight, shape.vocabulary);
  for (const auto& slice : dweight)
    if (slice.rows > 0)
      LW_CUDA(cudaMemsetAsync(slice.data, 0,
                              static_cast<std::size_t>(slice.rows * shape.features) * sizeof(float),
                              on.stream));
  if (shape.tokens == 0) return;
  for_each_table(dweight, [&](const Table<float>& table) {
    launch(on, blocks_for(shape.tokens, 1), kThreads, backward_kernel, table, dy, tokens, shape);
  });
}

}  // namespace leeway::kernels::cuda
