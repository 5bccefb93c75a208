#include "kernels/linear.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "kernels/gemm.hpp"
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
  LW_CHECK(precision != Precision::bf16);
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
    gemm({.m = batch,
          .n = end - row,
          .k = inputs,
          .lda = inputs,
          .ldb = inputs,
          .ldc = outputs,
          .transpose_b = true,
          .with_bias = shift != nullptr,
          .precision = precision},
         y + row, x, weight[w].data + (row - weight[w].first_row) * inputs, shift);
    row = end;
  }
}

void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                     ConstSlices weight, const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  LW_CHECK(precision != Precision::bf16);
  if (!dweight.empty()) check_rows(dweight, outputs);
  if (!dbias.empty()) check_rows(dbias, outputs);
  for (const auto& slice : dbias)
    column_sums(slice.data, dy + slice.first_row, batch, slice.rows, outputs);
  for (const auto& slice : dweight)
    gemm({.m = slice.rows,
          .n = inputs,
          .k = batch,
          .lda = outputs,
          .ldb = inputs,
          .ldc = inputs,
          .transpose_a = true,
          .precision = precision},
         slice.data, dy + slice.first_row, x);
  if (!dx) return;
  check_rows(weight, outputs);
  bool add = false;
  for (const auto& slice : weight) {
    gemm({.m = batch,
          .n = inputs,
          .k = slice.rows,
          .lda = outputs,
          .ldb = inputs,
          .ldc = inputs,
          .add = add,
          .precision = precision},
         dx, dy + slice.first_row, slice.data);
    add = true;
  }
}

}  // namespace leeway::kernels
