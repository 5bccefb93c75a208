#include "kernels/linear.hpp"

#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/simd.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

/// sum (count) = sum of the rows of dy (batch, count), which are `leading` floats apart.
LW_SIMD void sum_rows(float* __restrict sum, const float* __restrict dy, std::int64_t batch,
                      std::int64_t count, std::int64_t leading) {
  std::fill_n(sum, count, 0.0f);
  for (std::int64_t b = 0; b < batch; ++b) {
    const float* row = dy + b * leading;
#pragma omp simd
    for (std::int64_t o = 0; o < count; ++o) sum[o] += row[o];
  }
}

}  // namespace

void linear_forward(float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape) {
  const auto [batch, inputs, outputs] = shape;
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
          .with_bias = shift != nullptr},
         y + row, x, weight[w].data + (row - weight[w].first_row) * inputs, shift);
    row = end;
  }
}

void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                     ConstSlices weight, const LinearShape& shape) {
  const auto [batch, inputs, outputs] = shape;
  if (!dweight.empty()) check_rows(dweight, outputs);
  if (!dbias.empty()) check_rows(dbias, outputs);
  for (const auto& slice : dbias)
    sum_rows(slice.data, dy + slice.first_row, batch, slice.rows, outputs);
  for (const auto& slice : dweight)
    gemm({.m = slice.rows,
          .n = inputs,
          .k = batch,
          .lda = outputs,
          .ldb = inputs,
          .ldc = inputs,
          .transpose_a = true},
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
          .add = add},
         dx, dy + slice.first_row, slice.data);
    add = true;
  }
}

}  // namespace leeway::kernels
