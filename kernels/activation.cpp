#include "kernels/activation.hpp"

#include "core/check.hpp"
#include "kernels/activation_formulas.hpp"

namespace leeway::kernels {

namespace {

template <class Formula>
LW_INLINE void stream_forward(Formula formula, float* y, const float* x, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = formula.forward(x[i]);
}

template <class Formula>
LW_INLINE void stream_backward(Formula formula, float* dx, const float* dy, const float* kept,
                               std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * formula.slope(kept[i]);
}

LW_SIMD void forward(GeluFormula formula, float* y, const float* x, std::int64_t count) {
  stream_forward(formula, y, x, count);
}
LW_SIMD void forward(TanhFormula formula, float* y, const float* x, std::int64_t count) {
  stream_forward(formula, y, x, count);
}
LW_SIMD void forward(SigmoidFormula formula, float* y, const float* x, std::int64_t count) {
  stream_forward(formula, y, x, count);
}

LW_SIMD void backward(GeluFormula formula, float* dx, const float* dy, const float* kept,
                      std::int64_t count) {
  stream_backward(formula, dx, dy, kept, count);
}
LW_SIMD void backward(TanhFormula formula, float* dx, const float* dy, const float* kept,
                      std::int64_t count) {
  stream_backward(formula, dx, dy, kept, count);
}
LW_SIMD void backward(SigmoidFormula formula, float* dx, const float* dy, const float* kept,
                      std::int64_t count) {
  stream_backward(formula, dx, dy, kept, count);
}

/// Calls f(formula of `kind`).
template <class F>
void with_formula(Activation kind, F&& f) {
  switch (kind) {
    case Activation::gelu:
      return f(GeluFormula{});
    case Activation::tanh:
      return f(TanhFormula{});
    case Activation::sigmoid:
      return f(SigmoidFormula{});
  }
  LW_CHECK(false, static_cast<int>(kind));
}

}  // namespace

void activation_forward(Activation kind, float* y, const float* x, std::int64_t count) {
  with_formula(kind, [&](auto formula) { forward(formula, y, x, count); });
}

void activation_backward(Activation kind, float* dx, const float* dy, const float* kept,
                         std::int64_t count) {
  with_formula(kind, [&](auto formula) { backward(formula, dx, dy, kept, count); });
}

}  // namespace leeway::kernels
