#include "kernels/embedding.hpp"

#include <algorithm>
#include <limits>

#include "kernels/embedding_formula.hpp"
#include "kernels/simd.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

template <class T>
T* find_row(std::span<const RowSlice<T>> slices, std::int64_t row, std::int64_t features) {
  const auto after = std::upper_bound(
      slices.begin(), slices.end(), row,
      [](std::int64_t wanted, const RowSlice<T>& slice) { return wanted < slice.first_row; });
  const auto& slice = *(after - 1);
  return slice.data + (row - slice.first_row) * features;
}

LW_SIMD void add(float* sum, const float* x, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

}  // namespace

void embedding_forward(float* y, const float* tokens, ConstSlices weight,
                       const EmbeddingShape& shape) {
  check_rows(weight, shape.vocabulary);
  const std::int64_t features = shape.features;
  for (std::int64_t n = 0; n < shape.tokens; ++n, y += features)
    if (const std::int64_t row = row_of(tokens[n], shape.vocabulary); row >= 0)
      std::copy_n(find_row(weight, row, features), features, y);
    else
      std::fill_n(y, features, std::numeric_limits<float>::quiet_NaN());
}

void embedding_backward(Slices dweight, const float* dy, const float* tokens,
                        const EmbeddingShape& shape) {
  check_rows(dweight, shape.vocabulary);
  const std::int64_t features = shape.features;
  zero_rows(dweight, features);
  for (std::int64_t n = 0; n < shape.tokens; ++n, dy += features)
    if (const std::int64_t row = row_of(tokens[n], shape.vocabulary); row >= 0)
      add(find_row(dweight, row, features), dy, features);
}

}  // namespace leeway::kernels
