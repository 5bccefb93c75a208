#pragma once
// The part of cuBLAS that kernels/cuda uses, emulated: this header replaces the toolkit's.
#include "tests/cuda_emulation/cuda_runtime.h"

using cublasHandle_t = struct EmulatedBlas*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);

/// C (m, n) = alpha op(A) op(B) + beta C, column-major: op(A) is (m, k), op(B) is (k, n). If beta
/// is 0, C is not read. lda, ldb and ldc are the distances between columns.
cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              std::int64_t m, std::int64_t n, std::int64_t k, const float* alpha,
                              const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                              const float* beta, float* c, std::int64_t ldc);

/// The same for matrices of other types. A and B have the same type, C is f32. TF32 computes in
/// f32.
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, const void* alpha, const void* a,
                               cudaDataType a_type, std::int64_t lda, const void* b,
                               cudaDataType b_type, std::int64_t ldb, const void* beta, void* c,
                               cudaDataType c_type, std::int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm);
