#include <catch2/catch.hpp>

#include "tests/kernels/cases/elementwise.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/finite_difference.hpp"
#include "tests/kernels/reference/activation.hpp"

using namespace leeway;
using namespace leeway::test;
using kernels::Activation;

namespace {

constexpr Activation kAll[] = {Activation::gelu, Activation::tanh, Activation::sigmoid};

Floats forward(Executor& executor, Activation kind, const Floats& values) {
  const Array<float> x(executor, values);
  const auto count = static_cast<std::int64_t>(values.size());
  auto y = Array<float>::poisoned(executor, count);
  executor.activation_forward(kind, y.data(), x.data(), count);
  return y.read();
}

/// The value that backward needs: x or y.
Floats kept(Activation kind, const Floats& x) {
  if (kind == Activation::gelu) return x;
  Floats y;
  for (const float value : x)
    y.push_back(static_cast<float>(reference::activation(kind, static_cast<double>(value))));
  return y;
}

Floats backward(Executor& executor, Activation kind, const Floats& dy_values, const Floats& x) {
  const Array<float> dy(executor, dy_values), k(executor, kept(kind, x));
  const auto count = static_cast<std::int64_t>(x.size());
  auto dx = Array<float>::poisoned(executor, count);
  executor.activation_backward(kind, dx.data(), dy.data(), k.data(), count);
  return dx.read();
}

/// Numbers from -30 to 30, with many close to 0.
Floats sweep() {
  Floats x;
  for (double at = -30; at < 30; at += 0.00371) x.push_back(static_cast<float>(at));
  for (double at = 1e-30; at < 1; at *= 1.37)
    x.insert(x.end(), {static_cast<float>(at), static_cast<float>(-at)});
  return x;
}

}  // namespace

TEST_CASE("activations equal their definitions for any count, also in place", "[activation]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const Activation kind : kAll)
      for (const std::int64_t count : elementwise_cases()) {
        CAPTURE(static_cast<int>(kind), count);
        const Floats x = random_floats(rng, count, 6), dy = random_floats(rng, count);
        Doubles y, dx;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double at = static_cast<double>(x[i]);
          y.push_back(reference::activation(kind, at));
          dx.push_back(static_cast<double>(dy[i]) * reference::activation_slope(kind, at));
        }
        const Floats got = forward(executor, kind, x), back = backward(executor, kind, dy, x);
        REQUIRE(worst_error(got, y) < 1e-6);
        REQUIRE(worst_error(back, dx) < 1e-6);
        Array<float> in_place(executor, x), d_in_place(executor, dy);
        const Array<float> k(executor, kept(kind, x));
        executor.activation_forward(kind, in_place.data(), in_place.data(), count);
        executor.activation_backward(kind, d_in_place.data(), d_in_place.data(), k.data(), count);
        REQUIRE(in_place.read() == got);
        REQUIRE(d_in_place.read() == back);
      }
  });
}

TEST_CASE("tanh and sigmoid have a small relative error for all x", "[activation]") {
  for_each_executor([](Executor& executor) {
    const Floats x = sweep();
    for (const Activation kind : {Activation::tanh, Activation::sigmoid}) {
      const Floats y = forward(executor, kind, x);
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = reference::activation(kind, static_cast<double>(x[i]));
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) / exact - 1));
      }
      REQUIRE(worst < 3e-7);
    }
  });
}

TEST_CASE("gelu has a relative error below 5e-7 until it underflows", "[activation]") {
  for_each_executor([](Executor& executor) {
    const Floats x = sweep(), y = forward(executor, Activation::gelu, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double at = static_cast<double>(x[i]);
      const double exact = reference::activation(Activation::gelu, at);
      const double error = std::abs(static_cast<double>(y[i]) - exact) - 1e-38;  // flushed to 0
      worst = std::max(worst, error / (std::abs(exact) * (1 + at * at) + 1e-300));
      if (at < 0) REQUIRE(y[i] <= 0);
    }
    REQUIRE(worst < 5e-7);
    REQUIRE(forward(executor, Activation::gelu, {-10.0f})[0] < 0);
    REQUIRE(forward(executor, Activation::gelu, {-20.0f, 20.0f, -1e20f}) ==
            Floats{0.0f, 20.0f, 0.0f});
  });
}

TEST_CASE("activations propagate NaN, forward and backward", "[activation]") {
  for_each_executor([](Executor& executor) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const Activation kind : kAll) {
      Floats x(40, 0.5f), dy(40, 1.0f);
      x[3] = x[39] = dy[7] = nan;
      const Floats y = forward(executor, kind, x), dx = backward(executor, kind, dy, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        REQUIRE(std::isnan(y[i]) == std::isnan(x[i]));
        REQUIRE(std::isnan(dx[i]) == (std::isnan(x[i]) || std::isnan(dy[i])));
      }
    }
  });
}

TEST_CASE("the reference slopes of activations match finite differences", "[activation]") {
  for (const Activation kind : kAll)
    for (double x = -6; x < 6; x += 0.1) {
      const double step = 1e-5;
      const double slope =
          (reference::activation(kind, x + step) - reference::activation(kind, x - step)) /
          (2 * step);
      REQUIRE(std::abs(reference::activation_slope(kind, x) - slope) < 1e-9);
    }
}
