#include <catch2/catch.hpp>

#include "tests/kernels/cases/elementwise.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/finite_difference.hpp"
#include "tests/kernels/reference/sigmoid_cross_entropy.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

struct Result {
  kernels::ClassLoss loss;
  Floats dy;
};

Result run(Executor& executor, const Floats& logits, const Floats& truths, bool with_gradient) {
  const Array<float> y(executor, logits), t(executor, truths);
  const auto count = static_cast<std::int64_t>(logits.size());
  auto dy = Array<float>::poisoned(executor, count);
  LossResult result(executor);
  executor.sigmoid_cross_entropy(result.data(), with_gradient ? dy.data() : nullptr, y.data(),
                                 t.data(), count, 1);
  return {result.read(), dy.read()};
}

Floats random_truths(Rng& rng, std::int64_t count) {
  Floats t;
  for (std::int64_t i = 0; i < count; ++i)
    t.push_back(static_cast<float>(rng.one_in(3) ? rng.uniform() : rng.one_in(2)));
  return t;
}

}  // namespace

TEST_CASE("sigmoid cross entropy equals its definition for small and large logits", "[loss]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const std::int64_t count : elementwise_cases())
      for (const double scale : {0.1, 5.0, 80.0, 1e4}) {
        CAPTURE(count, scale);
        const Floats y = random_floats(rng, count, scale), t = random_truths(rng, count);
        const auto expected = reference::sigmoid_cross_entropy(to_doubles(y), to_doubles(t));
        const Result with = run(executor, y, t, true), without = run(executor, y, t, false);
        REQUIRE(std::abs(with.loss.loss - expected.loss) < 1e-6 * (1 + expected.loss));
        REQUIRE(with.loss.correct == expected.correct);
        REQUIRE(without.loss.loss == with.loss.loss);
        REQUIRE(without.loss.correct == expected.correct);
        REQUIRE(worst_error(with.dy, expected.dy) < 1e-6);
      }
  });
}

TEST_CASE("sigmoid cross entropy computes its gradient in place", "[loss]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    const Floats logits = random_floats(rng, 1500, 5), truths = random_truths(rng, 1500);
    Array<float> y(executor, logits);
    const Array<float> t(executor, truths);
    LossResult result(executor);
    executor.sigmoid_cross_entropy(result.data(), y.data(), y.data(), t.data(), 1500, 1);
    const Result apart = run(executor, logits, truths, true);
    REQUIRE(result.read().loss == apart.loss.loss);
    REQUIRE(y.read() == apart.dy);
  });
}

TEST_CASE("the loss of a confident correct answer is small but not 0", "[loss]") {
  for_each_executor([](Executor& executor) {
    for (float y = 0; y < 80; y += 0.37f) {
      const double exact = std::log1p(std::exp(-static_cast<double>(y)));
      REQUIRE(std::abs(run(executor, {y}, {1.0f}, false).loss.loss / exact - 1) < 4e-7);
      REQUIRE(std::abs(run(executor, {-y}, {0.0f}, false).loss.loss / exact - 1) < 4e-7);
    }
  });
}

TEST_CASE("a logit above 0 predicts 1, and a target above 0.5 counts as 1", "[loss]") {
  for_each_executor([](Executor& executor) {
    const Floats y = {1, 1, 1, 0, 0, 0, -1, -1, -1}, t = {0, 0.5f, 1, 0, 0.5f, 1, 0, 0.5f, 1};
    const std::int64_t right[] = {0, 0, 1, 1, 1, 0, 1, 1, 0};
    for (std::size_t i = 0; i < y.size(); ++i)
      REQUIRE(run(executor, {y[i]}, {t[i]}, false).loss.correct == right[i]);
  });
}

TEST_CASE("sigmoid cross entropy is 0 for an empty batch and NaN for a NaN", "[loss]") {
  for_each_executor([](Executor& executor) {
    const auto nothing = run(executor, {}, {}, true).loss;
    REQUIRE(nothing.loss == 0);
    REQUIRE(nothing.correct == 0);
    Floats y(2000, 1.0f);
    const Floats t(2000, 1.0f);
    y[1234] = std::numeric_limits<float>::quiet_NaN();
    const Result result = run(executor, y, t, true);
    REQUIRE(std::isnan(result.loss.loss));
    REQUIRE(std::isnan(result.dy[1234]));
    REQUIRE(!std::isnan(result.dy[1233]));
  });
}

TEST_CASE("the reference gradient of sigmoid cross entropy matches finite differences", "[loss]") {
  Rng rng(3);
  const Doubles y = to_doubles(random_floats(rng, 30, 4)), t = to_doubles(random_truths(rng, 30));
  const auto loss = [&](const Doubles& at) { return reference::sigmoid_cross_entropy(at, t).loss; };
  REQUIRE(gradient_error(loss, y, reference::sigmoid_cross_entropy(y, t).dy, rng) < 1e-8);
}
