#pragma once
// gemm: products of row-major matrices, by oneDNN.
#include <cstdint>

#include "kernels/precision.hpp"

namespace leeway::kernels {

/// C (m, n) = op(A) (m, k) * op(B) (k, n), where op is the identity or the transpose. A leading
/// dimension is the distance in elements between stored rows, at least their length.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false;  // A is stored (k, m)
  bool transpose_b = false;  // B is stored (n, k)
  bool add = false;          // C += instead of =
  bool with_bias = false;    // adds bias (n) to every row
  Precision precision = Precision::fp32;
  bool operator==(const GemmShape&) const = default;
};

/// A and B hold the operand type of the precision; C and the bias are f32.
///
/// Runs on the calling thread (see threads.hpp). Any extent may be 0; k = 0 gives zeros plus the
/// bias. `bias` may be null unless with_bias. C overlaps no other array. Each thread generates the
/// code for a shape at its first use and keeps it. The order of the sums depends only on the shape.
void gemm(const GemmShape& shape, float* c, const void* a, const void* b,
          const float* bias = nullptr);

}  // namespace leeway::kernels
