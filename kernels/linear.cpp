#include "kernels/linear.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "kernels/linear_products.hpp"
#include "kernels/simd.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

LW_SIMD void column_sums(float* __restrict sum, const float* __restrict x, std::int64_t rows,
                         std::int64_t columns, std::int64_t leading) {
  std::fill_n(sum, columns, 0.0f);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * leading;
#pragma omp simd
    for (std::int64_t o = 0; o < columns; ++o) sum[o] += row[o];
  }
}

void linear_forward(float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  LW_CHECK(!is_half(precision), name_of(precision));
  check_rows(weight, outputs);
  if (!bias.empty()) check_rows(bias, outputs);
  // Each range of rows that lies in one slice of both lists is one product with its bias.
  std::size_t w = 0, b = 0;
  for (std::int64_t row = 0; row < outputs;) {
    while (weight[w].first_row + weight[w].rows <= row) ++w;
    std::int64_t end = weight[w].first_row + weight[w].rows;
    const float* shift = nullptr;
    if (!bias.empty()) {
      while (bias[b].first_row + bias[b].rows <= row) ++b;
      end = std::min(end, bias[b].first_row + bias[b].rows);
      shift = bias[b].data + (row - bias[b].first_row);
    }
    GemmShape product = linear_forward_product(shape, end - row);
    product.with_bias = shift != nullptr;
    gemm(product, y + row, x, weight[w].data + (row - weight[w].first_row) * inputs, shift);
    row = end;
  }
}

void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                     ConstSlices weight, const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  LW_CHECK(!is_half(precision), name_of(precision));
  if (!dweight.empty()) check_rows(dweight, outputs);
  if (!dbias.empty()) check_rows(dbias, outputs);
  for (const auto& slice : dbias)
    column_sums(slice.data, dy + slice.first_row, batch, slice.rows, outputs);
  for (const auto& slice : dweight)
    gemm(linear_weight_product(shape, slice.rows), slice.data, dy + slice.first_row, x);
  if (!dx) return;
  check_rows(weight, outputs);
  bool add = false;
  for (const auto& slice : weight) {
    gemm(linear_input_product(shape, slice.rows, add), dx, dy + slice.first_row, slice.data);
    add = true;
  }
}

}  // namespace leeway::kernels
