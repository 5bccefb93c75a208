#include <catch2/catch.hpp>

#include "kernels/threads.hpp"
#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr Precision kHalves[] = {Precision::bf16, Precision::fp16};

/// A layer's arrays, on the host.
struct Example {
  Example(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, Precision precision,
          Rng& rng)
      : shape{batch, inputs, outputs, precision},
        x(random_floats(rng, batch * inputs)),
        weight(random_floats(rng, outputs * inputs)),
        bias(random_floats(rng, outputs)),
        dy(random_floats(rng, batch * outputs)) {}

  kernels::LinearShape shape;
  Floats x, weight, bias, dy;
};

struct Results {
  Floats y, dx, dweight, dbias;
};

/// By linear in fp32, on operands that are rounded first.
Results expected(Executor& executor, const Example& e) {
  const auto [batch, inputs, outputs, precision] = e.shape;
  const DType type = kernels::half_type(precision);
  const kernels::LinearShape shape{batch, inputs, outputs};
  const Array<float> x(executor, rounded_to(type, e.x)), dy(executor, rounded_to(type, e.dy));
  const Array<float> exact_dy(executor, e.dy);
  const SlicedArray<const float> weight(executor, rounded_to(type, e.weight), outputs, inputs,
                                        nullptr);
  const SlicedArray<const float> bias(executor, e.bias, outputs, 1, nullptr);
  const SlicedArray<float> dweight(executor, poisoned(outputs * inputs), outputs, inputs, nullptr);
  const SlicedArray<float> dbias(executor, poisoned(outputs), outputs, 1, nullptr);
  auto y = Array<float>::poisoned(executor, batch * outputs);
  auto dx = Array<float>::poisoned(executor, batch * inputs);
  executor.linear_forward(y.data(), x.data(), weight.slices(), bias.slices(), shape);
  executor.linear_backward(nullptr, dweight.slices(), dbias.slices(), exact_dy.data(), x.data(),
                           weight.slices(), shape);
  executor.linear_backward(dx.data(), dweight.slices(), {}, dy.data(), x.data(), weight.slices(),
                           shape);
  return {y.read(), dx.read(), dweight.read(), dbias.read()};
}

/// The results that a call computes. None may depend on whether another is requested.
struct Wanted {
  bool dx = true, parameters = true;
};

Results found(Executor& executor, const Example& e, Rng* split, Wanted wanted) {
  const auto [batch, inputs, outputs, precision] = e.shape;
  const Array<float> x(executor, e.x), dy(executor, e.dy), bias(executor, e.bias);
  const SlicedArray<const float> weight(executor, e.weight, outputs, inputs, split);
  const SlicedArray<float> dweight(executor, poisoned(outputs * inputs), outputs, inputs, split);
  auto packed = Array<std::byte>::poisoned(
      executor, static_cast<std::int64_t>(executor.linear_half_form(e.shape).bytes));
  auto scratch = Array<std::byte>::poisoned(
      executor, static_cast<std::int64_t>(executor.linear_half_scratch_bytes(e.shape)));
  auto y = Array<float>::poisoned(executor, batch * outputs);
  auto dx = Array<float>::poisoned(executor, batch * inputs);
  auto dbias = Array<float>::poisoned(executor, outputs);
  executor.linear_half_pack(packed.data(), weight.slices(), e.shape);
  executor.linear_half_forward(y.data(), x.data(), packed.data(), bias.data(), scratch.data(),
                               e.shape);
  executor.linear_half_backward(
      wanted.dx ? dx.data() : nullptr,
      wanted.parameters ? dweight.slices() : std::span<const RowSlice<float>>{},
      wanted.parameters ? dbias.data() : nullptr, dy.data(), x.data(), packed.data(),
      scratch.data(), e.shape);
  return {y.read(), dx.read(), dweight.read(), dbias.read()};
}

}  // namespace

TEST_CASE("linear in bf16 and fp16 equals fp32 with rounded operands", "[linear]") {
  kernels::use_one_compute_thread();
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    for (int round = 0; round < 60; ++round) {
      const Precision precision = kHalves[round % 2];
      const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
      const Example e(below(20), 1 + below(200), 1 + below(60), precision, rng);
      CAPTURE(name_of(precision), e.shape.batch, e.shape.inputs, e.shape.outputs);
      const Results right = expected(executor, e);
      for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
        const Results got = found(executor, e, split, {});
        REQUIRE(worst_error(got.y, right.y) < 1e-4);
        REQUIRE(worst_error(got.dx, right.dx) < 1e-4);
        REQUIRE(worst_error(got.dweight, right.dweight) < 1e-4);
        REQUIRE(worst_error(got.dbias, right.dbias) < 1e-4);
      }
      const Results whole = found(executor, e, nullptr, {});
      REQUIRE(found(executor, e, nullptr, {.parameters = false}).dx == whole.dx);
      const Results parameters = found(executor, e, nullptr, {.dx = false});
      REQUIRE(parameters.y == whole.y);
      REQUIRE(parameters.dweight == whole.dweight);
      REQUIRE(parameters.dbias == whole.dbias);
    }
  });
}

TEST_CASE("bf16 and fp16 keep infinities and NaN of their operands", "[linear]") {
  for_each_executor([](Executor& executor) {
    for (const Precision precision : kHalves) {
      Rng rng(4);
      Example e(2, 3, 2, precision, rng);
      e.x[0] = std::numeric_limits<float>::quiet_NaN();
      e.x[3] = std::numeric_limits<float>::infinity();
      const Floats y = found(executor, e, nullptr, {}).y;
      REQUIRE((std::isnan(y[0]) && std::isnan(y[1])));
      REQUIRE((std::isinf(y[2]) && std::isinf(y[3])));
    }
  });
}

TEST_CASE("operands from 65520 on are infinite in fp16 and finite in bf16", "[linear]") {
  for_each_executor([](Executor& executor) {
    const auto y_of = [&](Precision precision, float x) {
      Rng rng(6);
      Example e(1, 1, 1, precision, rng);
      e.x[0] = x;
      e.weight[0] = 1;
      e.bias[0] = 0;
      return found(executor, e, nullptr, {}).y[0];
    };
    REQUIRE(y_of(Precision::fp16, 65519) == 65504);
    REQUIRE(y_of(Precision::fp16, 65520) == std::numeric_limits<float>::infinity());
    REQUIRE(y_of(Precision::fp16, -65520) == -std::numeric_limits<float>::infinity());
    REQUIRE(y_of(Precision::bf16, 65536) == 65536);
  });
}

TEST_CASE("weights that are rounded to different types have different forms", "[linear]") {
  for_each_executor([](Executor& executor) {
    REQUIRE_FALSE(executor.linear_half_form({4, 8, 8, Precision::bf16}) ==
                  executor.linear_half_form({4, 8, 8, Precision::fp16}));
  });
}

TEST_CASE("linear in tf32 equals fp32 to the precision of tf32", "[linear]") {
  for_each_executor([](Executor& executor) {
    Rng rng(5);
    Example e(33, 120, 65, Precision::fp32, rng);
    const SlicedArray<const float> weight(executor, e.weight, 65, 120, nullptr);
    const Array<float> x(executor, e.x);
    auto exact = Array<float>::poisoned(executor, 33 * 65);
    auto rounded = Array<float>::poisoned(executor, 33 * 65);
    executor.linear_forward(exact.data(), x.data(), weight.slices(), {}, e.shape);
    e.shape.precision = Precision::tf32;
    executor.linear_forward(rounded.data(), x.data(), weight.slices(), {}, e.shape);
    REQUIRE(worst_error(rounded.read(), exact.read()) < 0x1p-10 * 10);
    if (executor.device().kind != Device::Kind::cuda) REQUIRE(rounded.read() == exact.read());
  });
}
