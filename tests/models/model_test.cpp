#include "models/model.hpp"

#include <cmath>
#include <limits>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::shared_ptr<const Model> mlp() {
  return classifier({flatten(), linear(512), relu(), linear(256), relu(), linear(10)}, {1, 28, 28},
                    10);
}

double deviation(const Floats& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

Floats initial(const Model& model, int parameter, std::uint64_t seed) {
  Floats values(static_cast<std::size_t>(
      model.parameters()[static_cast<std::size_t>(parameter)].spec.shape.count()));
  model.initialize(parameter, seed, values.data());
  return values;
}

}  // namespace

TEST_CASE("parameters are named and ordered as in PyTorch's Sequential", "[model]") {
  const auto model = mlp();
  std::vector<std::string> names;
  for (const auto& parameter : model->parameters()) names.push_back(parameter.name);
  REQUIRE(names == std::vector<std::string>{"1.weight", "1.bias", "3.weight", "3.bias", "5.weight",
                                            "5.bias"});
  REQUIRE(model->parameters()[0].spec.shape == Shape{512, 784});
  REQUIRE(model->parameter_count() == 535'818);
  REQUIRE(model->first_parameter(1) == 0);
  REQUIRE(model->first_parameter(2) == 2);
  REQUIRE(model->first_parameter(model->layers()) == 6);
  REQUIRE(model->flops_per_sample() == 2 * (784 * 512 + 512 * 256 + 256 * 10) + 512 + 256);
  REQUIRE(model->layer_name(3) == "layer 3 (linear)");
}

TEST_CASE("the error for layers that do not fit the data says what to change", "[model]") {
  REQUIRE(error_of({linear(10)}, kSoftmax, {1, 28, 28}, 10, 0) ==
          "model: layer 0 (linear) got samples of shape 1x28x28 and needs vectors; put a flatten "
          "layer before it");
  REQUIRE(error_of({linear(9)}, kSoftmax, {4}, 10, 0) ==
          "model: its output is 9, but the data has 10 classes; end it with linear, outputs = "
          "10");
  REQUIRE(error_of({linear(2)}, kSquares, {4}, 0, 1) ==
          "model: its output is 2, but the data's targets are 1; end it with linear, outputs = 1");
  REQUIRE(error_of({linear(2)}, kSquares, {4}, 2, 0) ==
          "loss: mean_squared_error needs data with numeric targets, but this data has classes; "
          "use softmax_cross_entropy");
  REQUIRE(error_of({linear(1)}, kSoftmax, {4}, 0, 1) ==
          "loss: softmax_cross_entropy needs data with classes, but this data has numeric targets; "
          "use mean_squared_error");
  REQUIRE(error_of({linear(0)}, kSoftmax, {4}, 10, 0) ==
          "model: layer 0: linear: outputs is 0; give it at least 1, for example outputs = 10");
  REQUIRE(error_of({}, kSoftmax, {4}, 10, 0) ==
          "model: it has no layers; add at least one, such as linear");
}

TEST_CASE("initial weights depend only on seed and parameter, and have the specified deviation",
          "[model]") {
  const auto model = mlp();
  REQUIRE(initial(*model, 0, 7) == initial(*model, 0, 7));
  REQUIRE(initial(*model, 0, 7) != initial(*model, 0, 8));
  REQUIRE(std::abs(deviation(initial(*model, 0, 7)) / std::sqrt(2.0 / 784) - 1) < 0.01);
  REQUIRE(deviation(initial(*model, 1, 7)) == 0);
  const auto other = classifier({linear(300, plan::Init::xavier), linear(300, plan::Init::normal),
                                 linear(10, plan::Init::zeros)},
                                {200}, 10);
  REQUIRE(std::abs(deviation(initial(*other, 0, 1)) / std::sqrt(2.0 / 500) - 1) < 0.01);
  REQUIRE(std::abs(deviation(initial(*other, 2, 1)) / 0.01 - 1) < 0.02);
  REQUIRE(deviation(initial(*other, 4, 1)) == 0);
}

TEST_CASE("a model learns to classify every sample of separable clusters", "[model]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(16), relu(), linear(3)}, {2}, 3);
  Memory memory(model);
  memory.initialize(3);
  RandomBatch data(*model, 90, 3);
  const float centers[3][2] = {{2, 0}, {-2, 1}, {0, -2}};
  for (std::size_t i = 0; i < 90; ++i)
    for (std::size_t f = 0; f < 2; ++f)
      data.x[2 * i + f] = 0.5f * data.x[2 * i + f] + centers[data.labels[i]][f];
  Pass pass(model, 90, true);
  const auto first = pass.forward(data.batch, memory.weights());
  REQUIRE(first.correct < 90);
  for (int step = 0; step < 100; ++step) descend(pass, memory, data.batch, 0.2f);
  const auto last = pass.forward(data.batch, memory.weights());
  REQUIRE(last.correct == 90);
  REQUIRE(last.loss < 0.1 * first.loss);
}

TEST_CASE("evaluation and training give the same outputs", "[model]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(8), relu(), linear(4)}, {6}, 4);
  Memory memory(model);
  memory.initialize(2);
  const RandomBatch data(*model, 10, 2);
  Pass training(model, 16, true), evaluation(model, 10, false);
  const auto a = training.forward(data.batch, memory.weights());
  const auto b = evaluation.forward(data.batch, memory.weights());
  REQUIRE(a.loss == b.loss);
  REQUIRE(a.correct == b.correct);
  REQUIRE(std::equal(training.outputs(), training.outputs() + 40, evaluation.outputs()));
}

TEST_CASE("backward out of order, twice, or without forward is refused", "[model]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(4), relu(), linear(3)}, {5}, 3);
  Memory memory(model);
  memory.initialize(1);
  const RandomBatch data(*model, 2, 1);
  Pass pass(model, 2, true), evaluation(model, 2, false);
  const auto backward = [&](Pass& p, int layer) {
    p.backward(layer, memory.weights(), memory.gradients());
  };
  REQUIRE_THROWS_AS(backward(pass, 2), CheckFailed);
  pass.forward(data.batch, memory.weights());
  REQUIRE_THROWS_AS(backward(pass, 1), CheckFailed);
  backward(pass, 2);
  REQUIRE_THROWS_AS(backward(pass, 2), CheckFailed);
  evaluation.forward(data.batch, memory.weights());
  REQUIRE_THROWS_AS(backward(evaluation, 2), CheckFailed);
  REQUIRE_THROWS_AS(pass.forward(RandomBatch(*model, 3, 1).batch, memory.weights()), CheckFailed);
}

TEST_CASE("a label outside of the model's classes is refused", "[model]") {
  const auto model = classifier({linear(3)}, {2}, 3);
  Memory memory(model);
  memory.initialize(1);
  RandomBatch data(*model, 2, 1);
  data.labels[1] = 3;
  Pass pass(model, 2, false);
  REQUIRE_THROWS_AS(pass.forward(data.batch, memory.weights()), CheckFailed);
}

TEST_CASE("the first layer whose output is not finite is named", "[model]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(4), relu(), linear(4), relu(), linear(3)}, {5}, 3);
  const RandomBatch data(*model, 6, 1);
  const auto first_bad = [&](std::size_t parameter, float value) {
    Memory memory(model);
    memory.initialize(1);
    Floats weight = memory.weight(parameter);
    weight[0] = value;
    memory.set(parameter, weight);
    Pass pass(model, 6, true);
    const auto result = pass.forward(data.batch, memory.weights());
    REQUIRE(!std::isfinite(result.loss));
    return pass.first_non_finite_layer();
  };
  REQUIRE(first_bad(0, NAN) == 0);
  REQUIRE(first_bad(3, NAN) == 2);
  REQUIRE(first_bad(5, std::numeric_limits<float>::infinity()) == 4);
}

TEST_CASE("an overflow of the loss after finite layers is reported as that of the loss",
          "[model]") {
  const auto model = regressor({linear(1, plan::Init::zeros)}, {1}, 1);
  Memory memory(model);
  memory.initialize(1);
  RandomBatch data(*model, 1, 1);
  data.targets[0] = 1e30f;
  Pass pass(model, 1, true);
  REQUIRE(!std::isfinite(pass.forward(data.batch, memory.weights()).loss));
  REQUIRE(pass.first_non_finite_layer() == model->layers());
}
