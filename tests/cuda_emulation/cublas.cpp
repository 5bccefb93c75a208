#include <algorithm>

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
