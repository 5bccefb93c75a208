#include <algorithm>
#include <vector>

#include "kernels/convert_formulas.hpp"
#include "tests/cuda_emulation/cublas_v2.h"

struct EmulatedBlas {};

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an invalid value";
}
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new EmulatedBlas;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_64(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b,
                              std::int64_t m, std::int64_t n, std::int64_t k, const float* alpha,
                              const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                              const float* beta, float* c, std::int64_t ldc) {
  const bool transpose_a = op_a == CUBLAS_OP_T, transpose_b = op_b == CUBLAS_OP_T;
  const auto least = [](std::int64_t rows) { return std::max<std::int64_t>(1, rows); };
  if (m < 0 || n < 0 || k < 0 || lda < least(transpose_a ? k : m) ||
      ldb < least(transpose_b ? n : k) || ldc < least(m))
    return CUBLAS_STATUS_INVALID_VALUE;
  // Strides of op(A) and op(B) down a column and along a row.
  const std::int64_t a_down = transpose_a ? lda : 1, a_along = transpose_a ? 1 : lda;
  const std::int64_t b_down = transpose_b ? ldb : 1, b_along = transpose_b ? 1 : ldb;
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum += static_cast<double>(a[row * a_down + i * a_along]) *
               static_cast<double>(b[i * b_down + column * b_along]);
      float& result = c[row + column * ldc];
      const double before =
          *beta == 0 ? 0 : static_cast<double>(*beta) * static_cast<double>(result);
      result = static_cast<float>(static_cast<double>(*alpha) * sum + before);
    }
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

float float_of(const void* numbers, cudaDataType type, std::int64_t i) {
  switch (type) {
    case CUDA_R_16BF:
      return leeway::kernels::to_float(static_cast<const leeway::kernels::Bf16*>(numbers)[i]);
    case CUDA_R_16F:
      return leeway::kernels::to_float(static_cast<const leeway::kernels::F16*>(numbers)[i]);
    case CUDA_R_32F:
      break;
  }
  return static_cast<const float*>(numbers)[i];
}

/// A matrix by columns, as floats.
std::vector<float> floats_of(const void* matrix, cudaDataType type, std::int64_t rows,
                             std::int64_t columns, std::int64_t leading) {
  std::vector<float> floats(static_cast<std::size_t>(leading * columns));
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t i = column * leading; i < column * leading + rows; ++i)
      floats[static_cast<std::size_t>(i)] = float_of(matrix, type, i);
  return floats;
}

}  // namespace

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, const void* alpha, const void* a,
                               cudaDataType a_type, std::int64_t lda, const void* b,
                               cudaDataType b_type, std::int64_t ldb, const void* beta, void* c,
                               cudaDataType c_type, std::int64_t ldc, cublasComputeType_t,
                               cublasGemmAlgo_t) {
  if (a_type != b_type || c_type != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  const bool transpose_a = op_a == CUBLAS_OP_T, transpose_b = op_b == CUBLAS_OP_T;
  const auto wide_a = floats_of(a, a_type, transpose_a ? k : m, transpose_a ? m : k, lda);
  const auto wide_b = floats_of(b, b_type, transpose_b ? n : k, transpose_b ? k : n, ldb);
  return cublasSgemm_64(handle, op_a, op_b, m, n, k, static_cast<const float*>(alpha),
                        wide_a.data(), lda, wide_b.data(), ldb, static_cast<const float*>(beta),
                        static_cast<float*>(c), ldc);
}
