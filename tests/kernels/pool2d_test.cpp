#include <catch2/catch.hpp>

#include "tests/kernels/cases/pool2d.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/reference/pool2d.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::int64_t inputs_of(const kernels::Pool2dShape& s) {
  return s.batch * s.height * s.width * s.channels;
}

std::int64_t outputs_of(const kernels::Pool2dShape& s) {
  return static_cast<std::int64_t>(reference::pool2d_outputs(s));
}

/// Few distinct values, so that windows have ties.
Floats with_ties(Rng& rng, std::int64_t count) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.below(4)) - 2;
  return values;
}

struct Pooled {
  Floats y;
  std::vector<std::uint8_t> from;
};

Pooled max_pool(Executor& executor, const Floats& values, const kernels::Pool2dShape& shape) {
  const Array<float> x(executor, values);
  auto y = Array<float>::poisoned(executor, outputs_of(shape));
  auto from = Array<std::uint8_t>::poisoned(executor, outputs_of(shape));
  executor.max_pool2d_forward(y.data(), from.data(), x.data(), shape);
  return {y.read(), from.read()};
}

/// Requires equal numbers, and NaN in the same places.
void require_same(const Floats& got, const Doubles& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE((std::isnan(expected[i]) ? std::isnan(got[i])
                                     : static_cast<double>(got[i]) == expected[i]));
}

}  // namespace

TEST_CASE("max_pool2d takes the first maximum and routes the gradient to its place", "[pool2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& shape : pool2d_cases()) {
      CAPTURE(describe(shape));
      const Floats x = with_ties(rng, inputs_of(shape));
      const auto expected = reference::max_pool2d_forward(to_doubles(x), shape);
      const Pooled got = max_pool(executor, x, shape);
      require_same(got.y, expected.y);
      REQUIRE(got.from == expected.from);

      const Floats gradient = random_floats(rng, outputs_of(shape));
      const Array<float> dy(executor, gradient);
      const Array<std::uint8_t> from(executor, got.from);
      auto dx = Array<float>::poisoned(executor, inputs_of(shape));
      executor.max_pool2d_backward(dx.data(), dy.data(), from.data(), shape);
      const auto back = reference::max_pool2d_backward(to_doubles(gradient), expected.from, shape);
      REQUIRE(worst_error(dx.read(), back) < 1e-6);
    }
  });
}

TEST_CASE("max_pool2d computes the same outputs without places", "[pool2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const auto& shape : pool2d_cases()) {
      CAPTURE(describe(shape));
      const Floats values = random_floats(rng, inputs_of(shape));
      const Array<float> x(executor, values);
      auto y = Array<float>::poisoned(executor, outputs_of(shape));
      executor.max_pool2d_forward(y.data(), nullptr, x.data(), shape);
      REQUIRE(y.read() == max_pool(executor, values, shape).y);
    }
  });
}

TEST_CASE("max_pool2d propagates the first NaN and handles minus infinity", "[pool2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    for (const auto& shape : pool2d_cases()) {
      CAPTURE(describe(shape));
      Floats x = with_ties(rng, inputs_of(shape));
      for (float& value : x)
        if (rng.one_in(6))
          value = std::numeric_limits<float>::quiet_NaN();
        else if (rng.one_in(3))
          value = -std::numeric_limits<float>::infinity();
      const auto expected = reference::max_pool2d_forward(to_doubles(x), shape);
      const Pooled got = max_pool(executor, x, shape);
      require_same(got.y, expected.y);
      REQUIRE(got.from == expected.from);
    }
  });
}

TEST_CASE("avg_pool2d is the mean of its windows and spreads the gradient evenly", "[pool2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    auto cases = pool2d_cases();
    cases.push_back({2, 3, 28, 28, 28, 28, 0});  // a window too large for max pooling
    for (const auto& shape : cases) {
      CAPTURE(describe(shape));
      const Floats values = random_floats(rng, inputs_of(shape));
      const Floats gradient = random_floats(rng, outputs_of(shape));
      const Array<float> x(executor, values), dy(executor, gradient);
      auto y = Array<float>::poisoned(executor, outputs_of(shape));
      auto dx = Array<float>::poisoned(executor, inputs_of(shape));
      executor.avg_pool2d_forward(y.data(), x.data(), shape);
      executor.avg_pool2d_backward(dx.data(), dy.data(), shape);
      REQUIRE(worst_error(y.read(), reference::avg_pool2d_forward(to_doubles(values), shape)) <
              1e-6);
      REQUIRE(worst_error(dx.read(), reference::avg_pool2d_backward(to_doubles(gradient), shape)) <
              1e-6);
    }
  });
}

TEST_CASE("the reference gradients of pooling match finite differences", "[pool2d]") {
  Rng rng(5);
  const kernels::Pool2dShape shape{2, 3, 7, 6, 3, 2, 1};
  const Doubles x = to_doubles(random_floats(rng, inputs_of(shape)));
  const Doubles dy = to_doubles(random_floats(rng, outputs_of(shape)));
  const auto of_max = [&](const Doubles& at) {
    return dot(dy, reference::max_pool2d_forward(at, shape).y);
  };
  const auto of_avg = [&](const Doubles& at) {
    return dot(dy, reference::avg_pool2d_forward(at, shape));
  };
  const auto from = reference::max_pool2d_forward(x, shape).from;
  REQUIRE(gradient_error(of_max, x, reference::max_pool2d_backward(dy, from, shape), rng) < 1e-8);
  REQUIRE(gradient_error(of_avg, x, reference::avg_pool2d_backward(dy, shape), rng) < 1e-8);
}

TEST_CASE("pooling refuses windows larger than the image and padding above half a window",
          "[pool2d]") {
  for_each_executor([](Executor& executor) {
    auto x = Array<float>::poisoned(executor, 100), y = Array<float>::poisoned(executor, 100);
    const kernels::Pool2dShape too_large{1, 1, 4, 4, 5, 1, 0}, too_padded{1, 1, 4, 4, 2, 1, 2};
    for (const auto& shape : {too_large, too_padded}) {
      REQUIRE_THROWS_AS(executor.max_pool2d_forward(y.data(), nullptr, x.data(), shape),
                        CheckFailed);
      REQUIRE_THROWS_AS(executor.avg_pool2d_backward(x.data(), y.data(), shape), CheckFailed);
    }
  });
}
