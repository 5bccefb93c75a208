#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

void positions_forward(On on, float* y, const float* x, ConstSlices weight,
                       const PositionsShape& shape) {
  check_rows(weight, shape.tokens);
  const std::int64_t sample = shape.tokens * shape.features;
  for (const auto& slice : weight) {
    const std::int64_t first = slice.first_row * shape.features;
    const std::int64_t count = slice.rows * shape.features;
    const float* const row = slice.data;
    for_each(on, shape.batch * count, [=] __device__(std::int64_t i) {
      const auto [b, j] = divide(i, count);
      const std::int64_t at = b * sample + first + j;
      y[at] = x[at] + row[j];
    });
  }
}

void positions_backward(On on, Slices dweight, const float* dy, const PositionsShape& shape) {
  check_rows(dweight, shape.tokens);
  const std::int64_t sample = shape.tokens * shape.features, batch = shape.batch;
  for (const auto& slice : dweight) {
    const float* const from = dy + slice.first_row * shape.features;
    float* const row = slice.data;
    for_each(on, slice.rows * shape.features, [=] __device__(std::int64_t j) {
      float sum = 0;
      for (std::int64_t b = 0; b < batch; ++b) sum += from[b * sample + j];
      row[j] = sum;
    });
  }
}

}  // namespace leeway::kernels::cuda
