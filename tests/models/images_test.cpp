#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

using Doubles = std::vector<double>;

/// The outputs of a model on one batch.
Floats outputs_of(const std::shared_ptr<const Model>& model, const Memory& memory,
                  const RandomBatch& data) {
  Pass pass(model, data.batch.size, false);
  pass.forward(data.batch, memory.weights());
  const float* y = pass.outputs();
  return {y, y + data.batch.size * model->output().count()};
}

void check_near(const Floats& found, const Doubles& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) < 1e-5);
  }
}

/// x (C, H, W) of one sample, weight (O, C, K, K), bias (O): y (O, H - K + 1, W - K + 1).
Doubles convolved(const float* x, const Shape& input, const Floats& weight, const Floats& bias,
                  std::int64_t kernel) {
  Doubles y;
  for (std::size_t o = 0; o < bias.size(); ++o)
    for (std::int64_t row = 0; row + kernel <= input[1]; ++row)
      for (std::int64_t column = 0; column + kernel <= input[2]; ++column) {
        double sum = static_cast<double>(bias[o]);
        const float* w = weight.data() + static_cast<std::int64_t>(o) * input[0] * kernel * kernel;
        for (std::int64_t c = 0; c < input[0]; ++c)
          for (std::int64_t i = 0; i < kernel; ++i)
            for (std::int64_t j = 0; j < kernel; ++j)
              sum += static_cast<double>(*w++) *
                     static_cast<double>(x[(c * input[1] + row + i) * input[2] + column + j]);
        y.push_back(sum);
      }
  return y;
}

/// x (I), weight (O, I), bias (O): y (O).
Doubles product(const Doubles& x, const Floats& weight, const Floats& bias) {
  Doubles y(bias.begin(), bias.end());
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i)
      y[o] += static_cast<double>(weight[o * x.size() + i]) * x[i];
  return y;
}

}  // namespace

TEST_CASE("flatten after a convolution gives the order (channel, row, column)", "[images]") {
  kernels::use_one_compute_thread();
  const Shape input{2, 4, 5};
  const auto model = classifier({conv2d(3, 2), flatten(), linear(4)}, input, 4);
  Memory memory(model);
  memory.initialize(1);
  memory.set(1, {0.5f, -1, 2});
  const RandomBatch data(*model, 3, 1);
  Doubles expected;
  for (std::int64_t b = 0; b < 3; ++b) {
    const Doubles image =
        convolved(data.x.data() + b * input.count(), input, memory.weight(0), memory.weight(1), 2);
    const Doubles y = product(image, memory.weight(2), memory.weight(3));
    expected.insert(expected.end(), y.begin(), y.end());
  }
  check_near(outputs_of(model, memory, data), expected);
}

TEST_CASE("images that are only flattened keep the data set's order", "[images]") {
  kernels::use_one_compute_thread();
  for (const Shape& input : {Shape{3, 2, 4}, Shape{1, 3, 4}, Shape{5, 1, 1}, Shape{2, 1, 3}}) {
    CAPTURE(input);
    const auto model = classifier({flatten(), linear(3)}, input, 3);
    Memory memory(model);
    memory.initialize(2);
    const RandomBatch data(*model, 4, 2);
    Doubles expected;
    for (std::int64_t b = 0; b < 4; ++b) {
      const float* x = data.x.data() + b * input.count();
      const Doubles y = product({x, x + input.count()}, memory.weight(0), memory.weight(1));
      expected.insert(expected.end(), y.begin(), y.end());
    }
    check_near(outputs_of(model, memory, data), expected);
  }
}

TEST_CASE("elementwise layers give the same result before and after flatten", "[images]") {
  kernels::use_one_compute_thread();
  const Shape input{3, 2, 4};
  const auto before = classifier({flatten(), gelu(), linear(3)}, input, 3);
  const auto after = classifier({gelu(), flatten(), linear(3)}, input, 3);
  Memory memory(before);
  memory.initialize(3);
  const RandomBatch data(*before, 4, 3);
  REQUIRE(outputs_of(before, memory, data) == outputs_of(after, memory, data));
}

TEST_CASE("backward of flatten restores the order of an image's gradient", "[images]") {
  // The weight gradient of a 1x1 convolution depends on the channels, not on the order of pixels.
  kernels::use_one_compute_thread();
  const Shape input{2, 3, 2};
  const auto model = regressor({conv2d(2, 1, {.bias = false}), flatten()}, input, 12);
  Memory memory(model);
  memory.initialize(4);
  const RandomBatch data(*model, 3, 4);
  Pass pass(model, 3, true);
  pass.forward(data.batch, memory.weights());
  run_backward(pass, memory);
  const Floats weight = memory.weight(0), gradient = memory.gradient(0);
  // Mean squared error: dy = 2 (y - target) / count. At each pixel y_o = sum over c of w_oc x_c.
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t c = 0; c < 2; ++c) {
      double expected = 0;
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t pixel = 0; pixel < 6; ++pixel) {
          const auto x = [&](std::size_t channel) {
            return static_cast<double>(data.x[(b * 2 + channel) * 6 + pixel]);
          };
          const double y = static_cast<double>(weight[o * 2]) * x(0) +
                           static_cast<double>(weight[o * 2 + 1]) * x(1);
          const double target = static_cast<double>(data.targets[(b * 2 + o) * 6 + pixel]);
          expected += 2 * (y - target) / 36 * x(c);
        }
      CHECK(std::abs(static_cast<double>(gradient[o * 2 + c]) - expected) < 1e-5);
    }
}
