#include <algorithm>

#include "core/check.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/cuda/reduce.hpp"
#include "kernels/linear_products.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

namespace {

/// A product with tensor cores. The arguments are cuBLAS's: by columns.
void tensor_core_gemm(On on, const GemmShape& s, const float* one, const void* b, const void* a,
                      const float* keep, float* c) {
  const cudaDataType type = s.precision == Precision::bf16   ? CUDA_R_16BF
                            : s.precision == Precision::fp16 ? CUDA_R_16F
                                                             : CUDA_R_32F;
  LW_CUBLAS(cublasGemmEx_64(
      on.blas, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
      s.n, s.m, s.k, one, b, type, s.ldb, a, type, s.lda, keep, c, CUDA_R_32F, s.ldc,
      is_half(s.precision) ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32,
      CUBLAS_GEMM_DEFAULT));
}

}  // namespace

// cuBLAS stores matrices by columns, so a row-major C (m, n) is its transpose (n, m) there, and
// C^T = op(B)^T op(A)^T. Hence A and B are swapped, and m and n too, but the transpose flags are
// unchanged.
void gemm(On on, const GemmShape& s, float* c, const void* a, const void* b) {
  LW_CHECK(!s.with_bias);
  if (s.m == 0 || s.n == 0) return;
  if (s.k == 0) {
    if (!s.add)
      LW_CUDA(cudaMemset2DAsync(c, static_cast<std::size_t>(s.ldc) * sizeof(float), 0,
                                static_cast<std::size_t>(s.n) * sizeof(float),
                                static_cast<std::size_t>(s.m), on.stream));
    return;
  }
  const float one = 1, keep = s.add ? 1 : 0;
  if (s.precision != Precision::fp32) return tensor_core_gemm(on, s, &one, b, a, &keep, c);
  LW_CUBLAS(cublasSgemm_64(on.blas, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                           s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, s.n, s.m, s.k, &one,
                           static_cast<const float*>(b), s.ldb, static_cast<const float*>(a), s.lda,
                           &keep, c, s.ldc));
}

void column_sums(On on, float* sum, const float* x, std::int64_t rows, std::int64_t columns,
                 std::int64_t leading) {
  reduce_columns<1>(
      on, rows, columns,
      [=] __device__(std::int64_t row, std::int64_t column) {
        return Sums<1>{{x[row * leading + column]}};
      },
      [=] __device__(std::int64_t column, const Sums<1>& sums) {
        sum[column] = static_cast<float>(sums.of[0]);
      });
}

void add_bias(On on, float* y, const float* bias, std::int64_t rows, std::int64_t columns,
              std::int64_t leading) {
  if (columns == leading) {
    map(
        on, rows * columns, y,
        [=] __device__(std::int64_t i, float value) {
          return value + bias[divide(i, columns).remainder];
        },
        y);
    return;
  }
  for_each(on, rows * columns, [=] __device__(std::int64_t i) {
    const auto [row, column] = divide(i, columns);
    y[row * leading + column] += bias[column];
  });
}

void linear_forward(On on, float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  LW_CHECK(!is_half(precision), name_of(precision));
  check_rows(weight, outputs);
  if (!bias.empty()) check_rows(bias, outputs);
  for (const auto& slice : weight)
    gemm(on, linear_forward_product(shape, slice.rows), y + slice.first_row, x, slice.data);
  for (const auto& slice : bias)
    add_bias(on, y + slice.first_row, slice.data, batch, slice.rows, outputs);
}

void linear_backward(On on, float* dx, Slices dweight, Slices dbias, const float* dy,
                     const float* x, ConstSlices weight, const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  LW_CHECK(!is_half(precision), name_of(precision));
  if (!dweight.empty()) check_rows(dweight, outputs);
  if (!dbias.empty()) check_rows(dbias, outputs);
  for (const auto& slice : dbias)
    column_sums(on, slice.data, dy + slice.first_row, batch, slice.rows, outputs);
  for (const auto& slice : dweight)
    gemm(on, linear_weight_product(shape, slice.rows), slice.data, dy + slice.first_row, x);
  if (!dx) return;
  check_rows(weight, outputs);
  bool add = false;
  for (const auto& slice : weight) {
    gemm(on, linear_input_product(shape, slice.rows, add), dx, dy + slice.first_row, slice.data);
    add = true;
  }
}

}  // namespace leeway::kernels::cuda
