#include "core/check.hpp"
#include "kernels/activation_formulas.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"
#include "kernels/philox.hpp"

namespace leeway::kernels::cuda {

namespace {

/// Calls f(formula of `kind`).
template <class F>
void with_formula(Activation kind, F f) {
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

template <class Formula>
struct Forward {
  Formula formula;
  __device__ float operator()(std::int64_t, float x) const { return formula.forward(x); }
};
template <class Formula>
struct Backward {
  Formula formula;
  __device__ float operator()(std::int64_t, float dy, float kept) const {
    return dy * formula.slope(kept);
  }
};

}  // namespace

void relu_forward(On on, float* y, const float* x, std::int64_t count) {
  map(
      on, count, y,
      [] __device__(std::int64_t, float value) { return value < 0 ? 0.0f : value; },  // NaN stays
      x);
}

void relu_backward(On on, float* dx, const float* dy, const float* y, std::int64_t count) {
  map(
      on, count, dx,
      [] __device__(std::int64_t, float gradient, float value) {
        return value <= 0 ? 0.0f : gradient;
      },
      dy, y);
}

void activation_forward(On on, Activation kind, float* y, const float* x, std::int64_t count) {
  with_formula(kind,
               [&](auto formula) { map(on, count, y, Forward<decltype(formula)>{formula}, x); });
}

void activation_backward(On on, Activation kind, float* dx, const float* dy, const float* kept,
                         std::int64_t count) {
  with_formula(kind, [&](auto formula) {
    map(on, count, dx, Backward<decltype(formula)>{formula}, dy, kept);
  });
}

void dropout(On on, float* y, const float* x, const std::uint64_t* keys,
             const DropoutShape& shape) {
  LW_CHECK(shape.probability >= 0 && shape.probability < 1, shape.probability);
  const DropoutMask mask(shape.probability, shape.salt);
  const std::int64_t count = shape.count, blocks = (count + 3) / 4;
  // Each thread draws one block of the generator: four words for four elements of a sample.
  if (count % 4 == 0 && aligned16(y, x)) {
    auto* const out = reinterpret_cast<float4*>(y);
    const auto* const in = reinterpret_cast<const float4*>(x);
    for_each(on, shape.batch * blocks, [=] __device__(std::int64_t i) {
      const auto [sample, block] = divide(i, blocks);
      const PhiloxWords words = mask.block(keys[sample], static_cast<std::uint64_t>(block));
      const float4 v = in[i];
      out[i] = {mask.apply(v.x, words.a), mask.apply(v.y, words.b), mask.apply(v.z, words.c),
                mask.apply(v.w, words.d)};
    });
    return;
  }
  for_each(on, shape.batch * blocks, [=] __device__(std::int64_t i) {
    const auto [sample, block] = divide(i, blocks);
    const PhiloxWords words = mask.block(keys[sample], static_cast<std::uint64_t>(block));
    const std::int64_t first = sample * count + 4 * block;
    const std::int64_t size = min(count - 4 * block, std::int64_t{4});
    const std::uint32_t word[] = {words.a, words.b, words.c, words.d};
    for (int w = 0; w < 4; ++w)
      if (w < size) y[first + w] = mask.apply(x[first + w], word[w]);
  });
}

void accumulate(On on, float* acc, const float* g, float scale, std::int64_t count, Write write) {
  if (write == Write::assign)
    map(
        on, count, acc, [=] __device__(std::int64_t, float value) { return scale * value; }, g);
  else
    map(
        on, count, acc,
        [=] __device__(std::int64_t, float sum, float value) { return sum + scale * value; }, acc,
        g);
}

}  // namespace leeway::kernels::cuda
