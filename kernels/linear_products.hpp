#pragma once
// The matrix products of linear, for all devices and precisions: `rows` rows of W at a time, as W
// is split by rows.
#include "kernels/gemm.hpp"
#include "kernels/linear.hpp"

namespace leeway::kernels {

/// y (B, rows) = x (B, I) W^T, without the bias; y has O columns.
inline GemmShape linear_forward_product(const LinearShape& s, std::int64_t rows) {
  return {.m = s.batch,
          .n = rows,
          .k = s.inputs,
          .lda = s.inputs,
          .ldb = s.inputs,
          .ldc = s.outputs,
          .transpose_b = true,
          .precision = s.precision};
}

/// dW (rows, I) = dy^T x; dy has O columns.
inline GemmShape linear_weight_product(const LinearShape& s, std::int64_t rows) {
  return {.m = rows,
          .n = s.inputs,
          .k = s.batch,
          .lda = s.outputs,
          .ldb = s.inputs,
          .ldc = s.inputs,
          .transpose_a = true,
          .precision = s.precision};
}

/// dx (B, I) = dy (B, rows) W, or += it; dy has O columns.
inline GemmShape linear_input_product(const LinearShape& s, std::int64_t rows, bool add) {
  return {.m = s.batch,
          .n = s.inputs,
          .k = rows,
          .lda = s.outputs,
          .ldb = s.inputs,
          .ldc = s.inputs,
          .add = add,
          .precision = s.precision};
}

}  // namespace leeway::kernels
