#include "kernels/positions.hpp"

#include "kernels/simd.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

LW_SIMD void add(float* y, const float* x, const float* w, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] + w[i];
}

/// Calls f(slice, offset of its first row in a sample, number of floats).
template <class Slice, class F>
void for_each_slice(std::span<const Slice> slices, const PositionsShape& shape, F f) {
  check_rows(slices, shape.tokens);
  for (const auto& slice : slices)
    f(slice, slice.first_row * shape.features, slice.rows * shape.features);
}

}  // namespace

void positions_forward(float* y, const float* x, ConstSlices weight, const PositionsShape& shape) {
  const std::int64_t sample = shape.tokens * shape.features;
  for_each_slice(weight, shape, [&](const auto& slice, std::int64_t first, std::int64_t count) {
    for (std::int64_t at = first; at < shape.batch * sample; at += sample)
      add(y + at, x + at, slice.data, count);
  });
}

void positions_backward(Slices dweight, const float* dy, const PositionsShape& shape) {
  const std::int64_t sample = shape.tokens * shape.features;
  zero_rows(dweight, shape.features);
  for_each_slice(dweight, shape, [&](const auto& slice, std::int64_t first, std::int64_t count) {
    for (std::int64_t at = first; at < shape.batch * sample; at += sample)
      add(slice.data, slice.data, dy + at, count);
  });
}

}  // namespace leeway::kernels
