#include "tests/kernels/cases/attention.hpp"

#include <catch2/catch.hpp>

#include "kernels/positions.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/finite_difference.hpp"
#include "tests/kernels/reference/attention.hpp"

using namespace leeway;
using namespace leeway::test;
using kernels::AttentionShape;

namespace {

struct Outcome {
  Floats y, log_sum, dx;
};

Outcome run(Executor& executor, const Floats& input, const Floats& gradient,
            const AttentionShape& s) {
  const Array<float> x(executor, input), dy(executor, gradient);
  auto y = Array<float>::poisoned(executor, s.batch * s.tokens * s.features);
  auto log_sum = Array<float>::poisoned(executor, s.batch * s.tokens * s.heads);
  auto dx = Array<float>::poisoned(executor, 3 * s.batch * s.tokens * s.features);
  auto scratch = Array<std::byte>::poisoned(
      executor, static_cast<std::int64_t>(executor.attention_scratch_bytes(s)));
  executor.attention_forward(y.data(), log_sum.data(), x.data(), scratch.data(), s);
  executor.attention_backward(dx.data(), dy.data(), x.data(), y.data(), log_sum.data(),
                              scratch.data(), s);
  return {y.read(), log_sum.read(), dx.read()};
}

std::int64_t outputs_of(const AttentionShape& s) {
  return s.batch * s.tokens * s.features;
}

}  // namespace

TEST_CASE("attention equals its definition, forward and backward", "[attention]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& s : attention_cases())
      // Nearly equal weights, and weights that are 0 for most keys.
      for (const double spread : {0.5, 4.0}) {
        CAPTURE(describe(s), spread);
        const Floats x = random_floats(rng, 3 * outputs_of(s), spread);
        const Floats dy = random_floats(rng, outputs_of(s));
        const reference::Attention definition{s};
        const auto expected = definition.forward(to_doubles(x));
        const Outcome found = run(executor, x, dy, s);
        REQUIRE(worst_error(found.y, expected.y) < 5e-6 * spread * spread);
        REQUIRE(worst_error(found.log_sum, expected.log_sum) < 2e-6);
        REQUIRE(worst_error(found.dx, definition.backward(to_doubles(dy), to_doubles(x))) <
                2e-5 * spread * spread);
      }
  });
}

TEST_CASE("the reference gradients of attention match finite differences", "[attention]") {
  Rng rng(2);
  for (const AttentionShape& s : {AttentionShape{2, 9, 2, 6}, AttentionShape{1, 1, 1, 4}}) {
    const reference::Attention definition{s};
    const Doubles x = to_doubles(random_floats(rng, 3 * outputs_of(s)));
    const Doubles dy = to_doubles(random_floats(rng, outputs_of(s)));
    const auto loss = [&](const Doubles& at) { return dot(dy, definition.forward(at).y); };
    REQUIRE(gradient_error(loss, x, definition.backward(dy, x), rng) < 1e-6);
  }
}

TEST_CASE("neither values nor gradients depend on later tokens", "[attention]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    const AttentionShape s{1, 70, 2, 20};
    const Floats x = random_floats(rng, 3 * outputs_of(s));
    for (const std::int64_t last : {0, 31, 32, 50, 63, 64}) {
      CAPTURE(last);
      // Changes the tokens after `last`; only outputs up to `last` have a gradient.
      Floats changed = x, dy(static_cast<std::size_t>(outputs_of(s)));
      const auto end = static_cast<std::size_t>((last + 1) * s.features);
      for (std::size_t i = 3 * end; i < changed.size(); ++i) changed[i] = 1 - 2 * changed[i];
      for (std::size_t i = 0; i < end; ++i) dy[i] = 1;
      const Outcome one = run(executor, x, dy, s), other = run(executor, changed, dy, s);
      REQUIRE(std::equal(one.y.begin(), one.y.begin() + static_cast<std::ptrdiff_t>(end),
                         other.y.begin()));
      REQUIRE(one.y != other.y);
      for (std::size_t i = 3 * end; i < one.dx.size(); ++i) REQUIRE(one.dx[i] == 0);
    }
  });
}

TEST_CASE("attention is finite for very large logits", "[attention]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    const AttentionShape s{1, 100, 1, 16};
    const Floats x = random_floats(rng, 3 * outputs_of(s), 200);
    const reference::Attention definition{s};
    const Outcome found = run(executor, x, Floats(static_cast<std::size_t>(outputs_of(s)), 1), s);
    // Logits of ten thousands: nearly all weight is on few keys.
    REQUIRE(worst_error(found.log_sum, definition.forward(to_doubles(x)).log_sum) < 1e-5);
    for (const float value : found.dx) REQUIRE(std::isfinite(value));
  });
}

TEST_CASE("attention propagates NaN to exactly the tokens that attend to it", "[attention]") {
  for_each_executor([](Executor& executor) {
    Rng rng(5);
    const AttentionShape s{1, 50, 2, 8};
    Floats x = random_floats(rng, 3 * outputs_of(s));
    const std::size_t token = 40, wide = 24;
    x[token * wide + 8 + 1] = std::numeric_limits<float>::quiet_NaN();  // a key of the first head
    const Outcome found = run(executor, x, Floats(static_cast<std::size_t>(outputs_of(s)), 1), s);
    for (std::size_t t = token; t < 50; ++t) {
      REQUIRE(std::isnan(found.y[t * 8]));
      REQUIRE(std::isfinite(found.y[t * 8 + 4]));
    }
  });
}

TEST_CASE("positions adds its table to every sample and sums gradients over the batch",
          "[positions]") {
  for_each_executor([](Executor& executor) {
    Rng rng(6);
    for (const auto& of : attention_cases()) {
      const kernels::PositionsShape s{of.batch, of.tokens, of.features};
      CAPTURE(describe(of));
      const std::int64_t sample = s.tokens * s.features;
      const Floats values = random_floats(rng, s.batch * sample),
                   table = random_floats(rng, sample);
      Floats expected = values, sums(static_cast<std::size_t>(sample));
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected[i] += table[i % table.size()];
        sums[i % table.size()] += values[i];
      }
      for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
        Array<float> x(executor, values);
        auto y = Array<float>::poisoned(executor, s.batch * sample);
        const SlicedArray<const float> weight(executor, table, s.tokens, s.features, split);
        const SlicedArray<float> dweight(executor, poisoned(sample), s.tokens, s.features, split);
        executor.positions_backward(dweight.slices(), x.data(), s);
        executor.positions_forward(y.data(), x.data(), weight.slices(), s);
        executor.positions_forward(x.data(), x.data(), weight.slices(), s);
        REQUIRE(y.read() == expected);
        REQUIRE(x.read() == expected);
        REQUIRE(dweight.read() == sums);
      }
    }
  });
}
