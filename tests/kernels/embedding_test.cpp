#include <catch2/catch.hpp>

#include "tests/kernels/cases/embedding.hpp"
#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// With `with_bad`, some tokens are invalid.
Floats random_tokens(Rng& rng, const kernels::EmbeddingShape& shape, bool with_bad) {
  const float vocabulary = static_cast<float>(shape.vocabulary);
  const float bad[] = {-1.0f, vocabulary, 0.5f, -0.25f, 1e30f, NAN, INFINITY, -INFINITY};
  Floats tokens;
  for (std::int64_t n = 0; n < shape.tokens; ++n) {
    const auto row = rng.below(static_cast<std::uint64_t>(shape.vocabulary));
    tokens.push_back(with_bad && rng.one_in(4) ? bad[rng.below(8)] : static_cast<float>(row));
  }
  return tokens;
}

bool names_row(float token, const kernels::EmbeddingShape& shape) {
  for (std::int64_t row = 0; row < shape.vocabulary; ++row)
    if (token == static_cast<float>(row)) return true;
  return false;
}

Floats forward(Executor& executor, const Floats& token_values, const Floats& table,
               const kernels::EmbeddingShape& shape, Rng* rng) {
  const Array<float> tokens(executor, token_values);
  const SlicedArray<const float> weight(executor, table, shape.vocabulary, shape.features, rng);
  auto y = Array<float>::poisoned(executor, shape.tokens * shape.features);
  executor.embedding_forward(y.data(), tokens.data(), weight.slices(), shape);
  return y.read();
}

Floats backward(Executor& executor, const Floats& gradient, const Floats& token_values,
                const kernels::EmbeddingShape& shape, Rng* rng) {
  const Array<float> tokens(executor, token_values), dy(executor, gradient);
  const SlicedArray<float> dweight(executor, poisoned(shape.vocabulary * shape.features),
                                   shape.vocabulary, shape.features, rng);
  executor.embedding_backward(dweight.slices(), dy.data(), tokens.data(), shape);
  return dweight.read();
}

}  // namespace

TEST_CASE("embedding looks up rows, and NaN for invalid tokens", "[embedding]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& shape : embedding_cases())
      for (const bool with_bad : {false, true}) {
        CAPTURE(shape.tokens, shape.vocabulary, shape.features, with_bad);
        const Floats tokens = random_tokens(rng, shape, with_bad);
        const Floats table = random_floats(rng, shape.vocabulary * shape.features);
        for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
          const Floats y = forward(executor, tokens, table, shape, split);
          for (std::size_t i = 0; i < y.size(); ++i) {
            const auto features = static_cast<std::size_t>(shape.features);
            const float token = tokens[i / features];
            if (names_row(token, shape))
              REQUIRE(y[i] == table[static_cast<std::size_t>(token) * features + i % features]);
            else
              REQUIRE(std::isnan(y[i]));
          }
        }
      }
  });
}

TEST_CASE("embedding sums gradients by token, in order, and zeroes the other rows", "[embedding]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const auto& shape : embedding_cases())
      for (const bool with_bad : {false, true}) {
        CAPTURE(shape.tokens, shape.vocabulary, shape.features, with_bad);
        const Floats tokens = random_tokens(rng, shape, with_bad);
        const Floats dy = random_floats(rng, shape.tokens * shape.features);
        Floats expected(static_cast<std::size_t>(shape.vocabulary * shape.features));
        for (std::size_t i = 0; i < dy.size(); ++i) {
          const auto features = static_cast<std::size_t>(shape.features);
          const float token = tokens[i / features];
          if (names_row(token, shape))
            expected[static_cast<std::size_t>(token) * features + i % features] += dy[i];
        }
        for (Rng* split : {static_cast<Rng*>(nullptr), &rng})
          REQUIRE(backward(executor, dy, tokens, shape, split) == expected);
      }
  });
}
