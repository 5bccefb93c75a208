#include "policies/optimizer/orthogonal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/gemm.hpp"

namespace leeway {

void orthogonalise(float* x, std::int64_t rows, std::int64_t columns) {
  constexpr int kIterations = 5;
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  const std::int64_t count = rows * columns, small = std::min(rows, columns);
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i)
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  if (count == 0 || squares == 0) return;
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (std::int64_t i = 0; i < count; ++i) x[i] *= scale;

  // With G = x x^T, or x^T x if that is smaller: x = a x + (b G + c G^2) x, or x times the bracket.
  const bool wide = rows <= columns;
  std::vector<float> gram(static_cast<std::size_t>(small * small)), polynomial(gram.size()),
      next(static_cast<std::size_t>(count));
  const kernels::GemmShape gram_of{.m = small,
                                   .n = small,
                                   .k = wide ? columns : rows,
                                   .lda = columns,
                                   .ldb = columns,
                                   .ldc = small,
                                   .transpose_a = !wide,
                                   .transpose_b = wide};
  const kernels::GemmShape square{
      .m = small, .n = small, .k = small, .lda = small, .ldb = small, .ldc = small};
  const kernels::GemmShape apply{.m = rows,
                                 .n = columns,
                                 .k = small,
                                 .lda = wide ? small : columns,
                                 .ldb = wide ? columns : small,
                                 .ldc = columns};
  for (int i = 0; i < kIterations; ++i) {
    kernels::gemm(gram_of, gram.data(), x, x);
    kernels::gemm(square, polynomial.data(), gram.data(), gram.data());
    for (std::size_t j = 0; j < gram.size(); ++j) polynomial[j] = kB * gram[j] + kC * polynomial[j];
    if (wide)
      kernels::gemm(apply, next.data(), polynomial.data(), x);
    else
      kernels::gemm(apply, next.data(), x, polynomial.data());
    for (std::int64_t j = 0; j < count; ++j) x[j] = kA * x[j] + next[static_cast<std::size_t>(j)];
  }
}

}  // namespace leeway
