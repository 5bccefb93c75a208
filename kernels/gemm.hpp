#pragma once
// gemm: products of row-major float matrices, through oneDNN.
#include <cstdint>

namespace leeway::kernels {

/// C (m, n) = op(A) (m, k) * op(B) (k, n), op being the transpose where asked for. A leading
/// dimension is the distance in floats between rows as stored, at least their length.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false;  // A is stored (k, m)
  bool transpose_b = false;  // B is stored (n, k)
  bool add = false;          // C += instead of =
  bool with_bias = false;    // adds bias (n) to every row
  bool operator==(const GemmShape&) const = default;
};

/// Computes it on the calling thread (see threads.hpp). Any extent may be 0: k = 0 gives zeros plus
/// the bias. `bias` may be null unless with_bias. C overlaps nothing else. The code for a shape is
/// generated at its first use in a thread and kept. The sums of a shape are always taken in the
/// same order.
void gemm(const GemmShape& shape, float* c, const float* a, const float* b,
          const float* bias = nullptr);

}  // namespace leeway::kernels
