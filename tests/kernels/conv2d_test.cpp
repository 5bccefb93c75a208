#include <catch2/catch.hpp>

#include "tests/kernels/cases/conv2d.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/reference/conv2d.hpp"

using namespace leeway;
using namespace leeway::test;
using kernels::ConvPass;

namespace {

/// Random data of a shape.
struct Example {
  Example(const kernels::Conv2dShape& s, Rng& rng)
      : shape(s),
        x(random_floats(rng, s.batch * s.height * s.width * s.channels)),
        weight(random_floats(rng, s.weight_count())),
        bias(random_floats(rng, s.outputs)),
        dy(random_floats(rng, s.batch * s.out_height() * s.out_width() * s.outputs)) {}

  std::int64_t row_floats() const { return shape.weight_count() / shape.outputs; }

  kernels::Conv2dShape shape;
  Floats x, weight, bias, dy;
};

Array<std::byte> scratch_of(Executor& executor, const kernels::Conv2dShape& shape) {
  return Array<std::byte>::poisoned(
      executor, static_cast<std::int64_t>(executor.conv2d_scratch_bytes(shape)));
}

Array<std::byte> packed(Executor& executor, const Example& e, ConvPass pass, Rng* rng) {
  const SlicedArray<const float> weight(executor, e.weight, e.shape.outputs, e.row_floats(), rng);
  const kernels::PackForm form = executor.conv2d_form(e.shape, pass);
  auto out = Array<std::byte>::poisoned(executor, static_cast<std::int64_t>(form.bytes));
  executor.conv2d_pack(out.data(), weight.slices(), e.shape, pass);
  executor.synchronize();
  return out;
}

Floats forward(Executor& executor, const Example& e, bool with_bias, Rng* rng) {
  const auto weight = packed(executor, e, ConvPass::forward, rng);
  const Array<float> x(executor, e.x), bias(executor, e.bias);
  auto y = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.dy.size()));
  auto scratch = scratch_of(executor, e.shape);
  executor.conv2d_forward(y.data(), x.data(), weight.data(), with_bias ? bias.data() : nullptr,
                          scratch.data(), e.shape);
  return y.read();
}

struct Gradients {
  Floats dx, dweight, dbias;
};

Gradients backward(Executor& executor, const Example& e, bool with_dx, bool with_bias, Rng* rng) {
  const auto weight = packed(executor, e, ConvPass::backward, rng);
  const Array<float> x(executor, e.x), dy(executor, e.dy);
  auto dx = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.x.size()));
  auto dbias = Array<float>::poisoned(executor, e.shape.outputs);
  const SlicedArray<float> dweight(executor, poisoned(e.shape.weight_count()), e.shape.outputs,
                                   e.row_floats(), rng);
  auto scratch = scratch_of(executor, e.shape);
  executor.conv2d_backward(with_dx ? dx.data() : nullptr, dweight.slices(),
                           with_bias ? dbias.data() : nullptr, dy.data(), x.data(),
                           with_dx ? weight.data() : nullptr, scratch.data(), e.shape);
  return {dx.read(), dweight.read(), dbias.read()};
}

}  // namespace

TEST_CASE("conv2d equals its definition, with whole and with split parameters", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& shape : conv2d_cases()) {
      CAPTURE(describe(shape));
      const Example e(shape, rng);
      const Doubles x = to_doubles(e.x), weight = to_doubles(e.weight);
      const auto y = reference::conv2d_forward(x, weight, to_doubles(e.bias), shape);
      const auto g = reference::conv2d_backward(to_doubles(e.dy), x, weight, shape);
      for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
        REQUIRE(worst_error(forward(executor, e, true, split), y) < 3e-5);  // 800 terms
        const Gradients got = backward(executor, e, true, true, split);
        REQUIRE(worst_error(got.dx, g.dx) < 1e-5);
        REQUIRE(worst_error(got.dweight, g.dweight) < 3e-5);  // sums of up to 3072 terms
        REQUIRE(worst_error(got.dbias, g.dbias) < 3e-5);
      }
    }
  });
}

namespace {

/// Checks all cases with operands that are rounded to the type of `precision`.
void check_rounded(Executor& executor, Precision precision) {
  const DType type = kernels::half_type(precision);
  Rng rng(7);
  for (auto shape : conv2d_cases()) {
    const bool small_groups =
        shape.groups > 1 && shape.channels * shape.outputs / (shape.groups * shape.groups) <= 64;
    if (small_groups && executor.device().kind == Device::Kind::cuda) continue;  // in fp32
    CAPTURE(name_of(precision), describe(shape));
    shape.precision = precision;
    const Example e(shape, rng);
    const Doubles x = to_doubles(rounded_to(type, e.x));
    const Doubles weight = to_doubles(rounded_to(type, e.weight));
    const auto y = reference::conv2d_forward(x, weight, to_doubles(e.bias), shape);
    const auto g = reference::conv2d_backward(to_doubles(rounded_to(type, e.dy)), x, weight, shape);
    const auto exact = reference::conv2d_backward(to_doubles(e.dy), x, weight, shape);
    for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
      REQUIRE(worst_error(forward(executor, e, true, split), y) < 1e-4);
      const Gradients got = backward(executor, e, true, true, split);
      REQUIRE(worst_error(got.dx, g.dx) < 1e-4);
      REQUIRE(worst_error(got.dweight, g.dweight) < 1e-4);  // tensor cores truncate their sums
      REQUIRE(worst_error(got.dbias, exact.dbias) < 3e-5);
    }
  }
}

}  // namespace

TEST_CASE("conv2d in bf16 equals fp32 with rounded operands", "[conv2d]") {
  for_each_executor([](Executor& executor) { check_rounded(executor, Precision::bf16); });
}

TEST_CASE("conv2d in fp16 equals fp32 with rounded operands", "[conv2d]") {
  for_each_executor([](Executor& executor) { check_rounded(executor, Precision::fp16); });
}

TEST_CASE("a convolution's weights that are rounded to different types have different forms",
          "[conv2d]") {
  for_each_executor([](Executor& executor) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward}) {
      kernels::Conv2dShape shape{2, 16, 9, 8, 32, 3, 1, 1, 1};
      std::vector<kernels::PackForm> forms;
      for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        shape.precision = precision;
        forms.push_back(executor.conv2d_form(shape, pass));
      }
      REQUIRE_FALSE(forms[0] == forms[1]);
      REQUIRE_FALSE(forms[1] == forms[2]);
      REQUIRE_FALSE(forms[2] == forms[0]);
    }
  });
}

TEST_CASE("conv2d works without a bias and skips gradients that are not requested", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const kernels::Conv2dShape& shape :
         {kernels::Conv2dShape{2, 3, 9, 8, 20, 3, 1, 1, 1}, {2, 17, 9, 8, 17, 3, 1, 1, 17}}) {
      const Example e(shape, rng);
      const Doubles x = to_doubles(e.x), weight = to_doubles(e.weight);
      const Doubles zeros(static_cast<std::size_t>(shape.outputs));
      REQUIRE(worst_error(forward(executor, e, false, nullptr),
                          reference::conv2d_forward(x, weight, zeros, shape)) < 1e-5);
      const auto g = reference::conv2d_backward(to_doubles(e.dy), x, weight, shape);
      const Gradients got = backward(executor, e, false, false, nullptr);
      REQUIRE(worst_error(got.dweight, g.dweight) < 1e-5);
      for (const float untouched : got.dx) REQUIRE(std::isnan(untouched));
      for (const float untouched : got.dbias) REQUIRE(std::isnan(untouched));
    }
  });
}

TEST_CASE("conv2d's gradients have the same bits when computed one at a time", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(6);
    for (const auto& shape : conv2d_cases()) {
      CAPTURE(describe(shape));
      const Example e(shape, rng);
      for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
        const Gradients whole = backward(executor, e, true, true, split);
        const auto weight = packed(executor, e, ConvPass::backward, split);
        const Array<float> x(executor, e.x), dy(executor, e.dy);
        auto dx = Array<float>::poisoned(executor, static_cast<std::int64_t>(e.x.size()));
        auto scratch = scratch_of(executor, shape);
        executor.conv2d_backward(dx.data(), {}, nullptr, dy.data(), x.data(), weight.data(),
                                 scratch.data(), shape);
        REQUIRE(dx.read() == whole.dx);
        const Gradients weights = backward(executor, e, false, true, nullptr);
        REQUIRE(weights.dweight == whole.dweight);
        REQUIRE(weights.dbias == whole.dbias);
      }
    }
  });
}

TEST_CASE("a NaN in an image reaches exactly the outputs whose window contains it", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    for (const kernels::Conv2dShape& shape : {kernels::Conv2dShape{2, 3, 8, 9, 20, 3, 1, 1, 1},
                                              {2, 17, 8, 9, 17, 3, 2, 1, 1},
                                              {2, 17, 8, 9, 17, 3, 1, 1, 17},
                                              {2, 6, 8, 9, 8, 1, 1, 0, 2}}) {
      CAPTURE(describe(shape));
      Example e(shape, rng);
      const std::size_t bad = rng.below(e.x.size());
      e.x[bad] = std::numeric_limits<float>::quiet_NaN();
      const auto y = reference::conv2d_forward(to_doubles(e.x), to_doubles(e.weight),
                                               to_doubles(e.bias), shape);
      const Floats got = forward(executor, e, true, nullptr);
      for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(std::isnan(got[i]) == std::isnan(y[i]));
    }
  });
}

TEST_CASE("packed weights do not depend on how the parameter is split", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    for (const auto& shape : conv2d_cases())
      for (const ConvPass pass : {ConvPass::forward, ConvPass::backward}) {
        CAPTURE(describe(shape));
        const Example e(shape, rng);
        REQUIRE(packed(executor, e, pass, nullptr).read() ==
                packed(executor, e, pass, &rng).read());
      }
  });
}

TEST_CASE("packed weights can be used for every batch size with the same form", "[conv2d]") {
  for_each_executor([](Executor& executor) {
    Rng rng(5);
    const kernels::Conv2dShape one{1, 16, 8, 8, 32, 3, 1, 1, 1};
    Example e(one, rng);
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward}) {
      const auto form = executor.conv2d_form(one, pass);
      REQUIRE(form == executor.conv2d_form(one, pass));
      const auto bytes = packed(executor, e, pass, nullptr).read();
      for (const std::int64_t batch : {0, 2, 7, 64}) {
        e.shape.batch = batch;
        if (executor.conv2d_form(e.shape, pass) == form)
          REQUIRE(packed(executor, e, pass, nullptr).read() == bytes);
      }
      e.shape = one;
    }
  });
}

TEST_CASE("conv2d refuses slices with gaps and channels that are no multiple of the groups",
          "[conv2d]") {
  for_each_executor([](Executor& executor) {
    const kernels::Conv2dShape shape{1, 4, 4, 4, 4, 3, 1, 1, 1};
    const Array<float> weight(executor, Floats(144));
    auto out = Array<std::byte>::poisoned(executor, 1 << 16);
    const std::vector<RowSlice<const float>> too_few = {{0, 3, weight.data()}};
    REQUIRE_THROWS_AS(executor.conv2d_pack(out.data(), too_few, shape, ConvPass::forward),
                      CheckFailed);
    REQUIRE_THROWS_AS(executor.conv2d_form({1, 4, 4, 4, 4, 3, 1, 1, 3}, ConvPass::forward),
                      CheckFailed);
  });
}

TEST_CASE("the reference gradients of conv2d match finite differences", "[conv2d]") {
  Rng rng(6);
  for (const kernels::Conv2dShape& shape :
       {kernels::Conv2dShape{2, 3, 6, 5, 4, 3, 1, 1, 1}, {2, 4, 7, 7, 6, 3, 2, 0, 2}}) {
    const Example e(shape, rng);
    const Doubles x = to_doubles(e.x), w = to_doubles(e.weight), b = to_doubles(e.bias);
    const Doubles dy = to_doubles(e.dy);
    const auto loss = [&](const Doubles& at_x, const Doubles& at_w, const Doubles& at_b) {
      return dot(dy, reference::conv2d_forward(at_x, at_w, at_b, shape));
    };
    const auto g = reference::conv2d_backward(dy, x, w, shape);
    const auto of_x = [&](const Doubles& at) { return loss(at, w, b); };
    const auto of_w = [&](const Doubles& at) { return loss(x, at, b); };
    const auto of_b = [&](const Doubles& at) { return loss(x, w, at); };
    REQUIRE(gradient_error(of_x, x, g.dx, rng) < 1e-8);
    REQUIRE(gradient_error(of_w, w, g.dweight, rng) < 1e-8);
    REQUIRE(gradient_error(of_b, b, g.dbias, rng) < 1e-8);
  }
}
