#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/kernels/cases/norm.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/reference/norm.hpp"

using namespace leeway;
using namespace leeway::test;
using reference::Axis;

namespace {

struct Example {
  Example(const NormCase& c, Rng& rng)
      : shape(c.shape),
        x(random_floats(rng, shape.rows * shape.columns, c.spread)),
        dy(random_floats(rng, shape.rows * shape.columns)),
        gamma(random_floats(rng, shape.columns)),
        beta(random_floats(rng, shape.columns)),
        largest(std::abs(c.mean) + c.spread) {
    for (float& value : x) value = static_cast<float>(static_cast<double>(value) + c.mean);
  }
  kernels::NormShape shape;
  Floats x, dy, gamma, beta;
  double largest;  // of |x|
};

struct Forward {
  Floats y, mean, inv_std;
};

struct Backward {
  Floats dx, dgamma, dbeta;
};

/// `in_place`: y is x, and dx is dy.
Forward forward(Executor& executor, Axis axis, const Example& e, bool in_place) {
  const std::int64_t groups = axis == Axis::columns ? e.shape.columns : e.shape.rows;
  Array<float> x(executor, e.x);
  const Array<float> gamma(executor, e.gamma), beta(executor, e.beta);
  auto y = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.x.size()));
  auto mean = Array<float>::poisoned(executor, groups);
  auto inv_std = Array<float>::poisoned(executor, groups);
  Array<float>& out = in_place ? x : y;
  const auto run =
      axis == Axis::columns ? &Executor::batch_norm_forward : &Executor::layer_norm_forward;
  (executor.*run)(out.data(), mean.data(), inv_std.data(), x.data(), gamma.data(), beta.data(),
                  e.shape);
  return {out.read(), mean.read(), inv_std.read()};
}

Backward backward(Executor& executor, Axis axis, const Example& e, const Forward& kept,
                  bool in_place, bool with_dx = true) {
  const Array<float> x(executor, e.x), gamma(executor, e.gamma);
  const Array<float> mean(executor, kept.mean), inv_std(executor, kept.inv_std);
  Array<float> dy(executor, e.dy);
  auto dx = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.x.size()));
  auto dgamma = Array<float>::poisoned(executor, e.shape.columns);
  auto dbeta = Array<float>::poisoned(executor, e.shape.columns);
  Array<float>& out = in_place ? dy : dx;
  const auto run =
      axis == Axis::columns ? &Executor::batch_norm_backward : &Executor::layer_norm_backward;
  (executor.*run)(with_dx ? out.data() : nullptr, dgamma.data(), dbeta.data(), dy.data(), x.data(),
                  mean.data(), inv_std.data(), gamma.data(), e.shape);
  return {out.read(), dgamma.read(), dbeta.read()};
}

void require_right(Executor& executor, Axis axis, const Example& e) {
  const Doubles x = to_doubles(e.x), gamma = to_doubles(e.gamma);
  const auto y = reference::norm_forward(axis, x, gamma, to_doubles(e.beta), e.shape);
  const auto g = reference::norm_backward(axis, to_doubles(e.dy), x, gamma, y, e.shape);
  // Rounding the mean to a float changes y by the rounding error over the standard deviation.
  const double tolerance =
      5e-6 + 1e-7 * e.largest * *std::max_element(y.inv_std.begin(), y.inv_std.end());
  const Forward got = forward(executor, axis, e, false);
  REQUIRE(worst_error(got.y, y.y) < tolerance);
  REQUIRE(worst_error(got.mean, y.mean) < 1e-6);
  REQUIRE(worst_error(got.inv_std, y.inv_std) < 1e-5);
  const Backward back = backward(executor, axis, e, got, false);
  REQUIRE(worst_error(back.dx, g.dx) < 10 * tolerance);
  REQUIRE(worst_error(back.dgamma, g.dgamma) < 10 * tolerance);
  REQUIRE(worst_error(back.dbeta, g.dbeta) < 1e-5);
  if (axis == Axis::columns) REQUIRE(forward(executor, axis, e, true).y == got.y);
  REQUIRE(backward(executor, axis, e, got, true).dx == back.dx);
  const Backward parameters = backward(executor, axis, e, got, false, false);
  REQUIRE(parameters.dgamma == back.dgamma);
  REQUIRE(parameters.dbeta == back.dbeta);
}

}  // namespace

TEST_CASE("batch_norm equals its definition, also in place and for a large mean", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& c : norm_cases()) {
      CAPTURE(describe(c));
      require_right(executor, Axis::columns, Example(c, rng));
    }
  });
}

TEST_CASE("layer_norm equals its definition, also in place and for a large mean", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const auto& c : norm_cases()) {
      if (c.shape.columns < 3) continue;  // two normalised numbers are -1 and 1, or both 0
      CAPTURE(describe(c));
      require_right(executor, Axis::rows, Example(c, rng));
    }
  });
}

TEST_CASE("batch_norm_statistics returns the unbiased variance", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    for (const std::int64_t rows : {1, 2, 50}) {
      const Example e({{rows, 7, 1e-5f}, 0.3, 1}, rng);
      const auto y = reference::norm_forward(Axis::columns, to_doubles(e.x), to_doubles(e.gamma),
                                             to_doubles(e.beta), e.shape);
      const Forward got = forward(executor, Axis::columns, e, false);
      const Array<float> mean(executor, got.mean), inv_std(executor, got.inv_std);
      auto batch_mean = Array<float>::poisoned(executor, 7);
      auto batch_variance = Array<float>::poisoned(executor, 7);
      executor.batch_norm_statistics(batch_mean.data(), batch_variance.data(), mean.data(),
                                     inv_std.data(), e.shape);
      Doubles unbiased = y.variance;
      const double n = static_cast<double>(rows);
      for (double& variance : unbiased) variance *= rows < 2 ? 1 : n / (n - 1);
      REQUIRE(worst_error(batch_mean.read(), y.mean) < 1e-6);
      REQUIRE(worst_error(batch_variance.read(), unbiased) < 1e-6);
    }
  });
}

TEST_CASE("batch_norm_inference uses the given mean and variance", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    for (const std::int64_t columns : {1, 5, 64, 300}) {
      const Example e({{37, columns, 1e-3f}, 0.3, 1}, rng);
      const auto y = reference::norm_forward(Axis::columns, to_doubles(e.x), to_doubles(e.gamma),
                                             to_doubles(e.beta), e.shape);
      const Array<float> x(executor, e.x), gamma(executor, e.gamma), beta(executor, e.beta);
      const Array<float> mean(executor, Floats(y.mean.begin(), y.mean.end()));
      const Array<float> variance(executor, Floats(y.variance.begin(), y.variance.end()));
      auto out = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.x.size()));
      executor.batch_norm_inference(out.data(), x.data(), gamma.data(), beta.data(), mean.data(),
                                    variance.data(), e.shape);
      REQUIRE(worst_error(out.read(), y.y) < 5e-6);
    }
  });
}

TEST_CASE("norms without rows have mean 0, inverse deviation 1 and gradients 0", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(5);
    const Example e({{0, 300, 1e-5f}, 0, 1}, rng);
    const Forward batch = forward(executor, Axis::columns, e, false);
    REQUIRE(batch.mean == Floats(300, 0.0f));
    REQUIRE(batch.inv_std == Floats(300, 1.0f));
    for (const Axis axis : {Axis::columns, Axis::rows}) {
      const Backward g = backward(executor, axis, e, forward(executor, axis, e, false), false);
      REQUIRE(g.dgamma == Floats(300, 0.0f));
      REQUIRE(g.dbeta == Floats(300, 0.0f));
    }
  });
}

TEST_CASE("norms propagate NaN to exactly the elements with the same mean", "[norm]") {
  for_each_executor([](Executor& executor) {
    Rng rng(6);
    for (const Axis axis : {Axis::columns, Axis::rows}) {
      Example e({{40, 6, 1e-5f}, 0, 1}, rng);
      e.x[13 * 6 + 2] = std::numeric_limits<float>::quiet_NaN();
      const Forward got = forward(executor, axis, e, false);
      for (std::size_t i = 0; i < e.x.size(); ++i)
        REQUIRE(std::isnan(got.y[i]) == (axis == Axis::columns ? i % 6 == 2 : i / 6 == 13));
    }
  });
}

TEST_CASE("the reference gradients of norms match finite differences", "[norm]") {
  Rng rng(7);
  for (const Axis axis : {Axis::columns, Axis::rows}) {
    const Example e({{9, 7, 1e-5f}, 0.3, 1}, rng);
    const Doubles x = to_doubles(e.x), gamma = to_doubles(e.gamma), beta = to_doubles(e.beta);
    const Doubles dy = to_doubles(e.dy);
    const auto loss = [&](const Doubles& at_x, const Doubles& at_gamma, const Doubles& at_beta) {
      return dot(dy, reference::norm_forward(axis, at_x, at_gamma, at_beta, e.shape).y);
    };
    const auto y = reference::norm_forward(axis, x, gamma, beta, e.shape);
    const auto g = reference::norm_backward(axis, dy, x, gamma, y, e.shape);
    const auto of_x = [&](const Doubles& at) { return loss(at, gamma, beta); };
    const auto of_gamma = [&](const Doubles& at) { return loss(x, at, beta); };
    const auto of_beta = [&](const Doubles& at) { return loss(x, gamma, at); };
    REQUIRE(gradient_error(of_x, x, g.dx, rng) < 1e-6);
    REQUIRE(gradient_error(of_gamma, gamma, g.dgamma, rng) < 1e-8);
    REQUIRE(gradient_error(of_beta, beta, g.dbeta, rng) < 1e-8);
  }
}
