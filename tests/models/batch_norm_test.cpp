#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// A model with only batch_norm, on images (C, H, W), with fixed scale, shift and running
/// statistics. Outputs are (C, H, W) too.
struct Normalized {
  explicit Normalized(bool training)
      : model(regressor({batch_norm(), flatten()}, {2, 2, 3}, 12)),
        memory(model),
        pass(model, 5, training) {
    kernels::use_one_compute_thread();
    memory.set(0, {3, 0.5f});
    memory.set(1, {1, -2});
    memory.set(2, {0.25f, -0.5f});
    memory.set(3, {4, 0.01f});
  }
  double y(std::size_t sample, std::size_t channel, std::size_t pixel) const {
    return static_cast<double>(pass.outputs()[(sample * 2 + channel) * 6 + pixel]);
  }

  std::shared_ptr<const Model> model;
  Memory memory;
  Pass pass;
};

struct Moments {
  double mean = 0, variance = 0;  // biased
};

/// Of one channel of samples (2, 6).
Moments moments_of(const RandomBatch& data, std::size_t channel) {
  Moments moments;
  const auto count = static_cast<double>(6 * data.batch.size);
  const auto each = [&](auto f) {
    for (std::size_t b = 0; b < static_cast<std::size_t>(data.batch.size); ++b)
      for (std::size_t pixel = 0; pixel < 6; ++pixel)
        f(static_cast<double>(data.x[(b * 2 + channel) * 6 + pixel]));
  };
  each([&](double x) { moments.mean += x / count; });
  each([&](double x) { moments.variance += (x - moments.mean) * (x - moments.mean) / count; });
  return moments;
}

/// Checks all outputs against these moments.
void check_outputs(const Normalized& norm, const RandomBatch& data, const Moments (&of)[2]) {
  const Floats scale = norm.memory.weight(0), shift = norm.memory.weight(1);
  for (std::size_t b = 0; b < static_cast<std::size_t>(data.batch.size); ++b)
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t pixel = 0; pixel < 6; ++pixel) {
        const double x = static_cast<double>(data.x[(b * 2 + c) * 6 + pixel]);
        const double expected =
            (x - of[c].mean) / std::sqrt(of[c].variance + 1e-5) * static_cast<double>(scale[c]) +
            static_cast<double>(shift[c]);
        CHECK(std::abs(norm.y(b, c, pixel) - expected) < 1e-5);
      }
}

}  // namespace

TEST_CASE("training normalizes by the batch's own mean and variance", "[batch_norm]") {
  Normalized norm(true);
  const RandomBatch data(*norm.model, 5, 1);
  norm.pass.forward(data.batch, norm.memory.weights());
  check_outputs(norm, data, {moments_of(data, 0), moments_of(data, 1)});
}

TEST_CASE("evaluation normalizes by the running mean and variance", "[batch_norm]") {
  Normalized norm(false);
  const RandomBatch data(*norm.model, 5, 1);
  norm.pass.forward(data.batch, norm.memory.weights());
  check_outputs(norm, data, {{0.25, 4}, {-0.5, static_cast<double>(0.01f)}});
}

TEST_CASE("the gradients of running statistics are the batch's mean and its unbiased variance",
          "[batch_norm]") {
  Normalized norm(true);
  const RandomBatch data(*norm.model, 4, 2);
  norm.pass.forward(data.batch, norm.memory.weights());
  run_backward(norm.pass, norm.memory);
  for (std::size_t c = 0; c < 2; ++c) {
    const Moments moments = moments_of(data, c);
    CHECK(std::abs(static_cast<double>(norm.memory.gradient(2)[c]) - moments.mean) < 1e-6);
    CHECK(std::abs(static_cast<double>(norm.memory.gradient(3)[c]) - moments.variance * 24 / 23) <
          1e-5);
  }
}

TEST_CASE("running statistics are parameters that start at 0 and 1 and are not counted",
          "[batch_norm]") {
  const auto model = classifier({plan::BatchNorm{.momentum = 0.25}, linear(3)}, {5}, 3);
  std::vector<std::string> names;
  std::vector<double> averages;
  for (const auto& parameter : model->parameters()) {
    names.push_back(parameter.name);
    averages.push_back(parameter.spec.average);
  }
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "0.running_mean", "0.running_var",
                                          "1.weight", "1.bias"});
  CHECK(averages == std::vector<double>{0, 0, 0.25, 0.25, 0, 0});
  CHECK(model->parameter_count() == 5 + 5 + 15 + 3);
  Memory memory(model);
  memory.initialize(1);
  CHECK(memory.weight(0) == Floats(5, 1.0f));
  CHECK(memory.weight(1) == Floats(5, 0.0f));
  CHECK(memory.weight(2) == Floats(5, 0.0f));
  CHECK(memory.weight(3) == Floats(5, 1.0f));
}

TEST_CASE("with running averages of the gradients, evaluation gives the outputs of training",
          "[batch_norm]") {
  const auto model = regressor({linear(3), batch_norm()}, {4}, 3);
  Memory memory(model);
  memory.initialize(5);
  const RandomBatch data(*model, 64, 5);
  Pass training(model, 64, true), evaluation(model, 64, false);
  training.forward(data.batch, memory.weights());
  run_backward(training, memory);
  for (const std::size_t p : {4u, 5u}) {
    Floats value = memory.weight(p);
    for (int round = 0; round < 100; ++round)
      for (std::size_t i = 0; i < value.size(); ++i)
        value[i] += 0.1f * (memory.gradient(p)[i] - value[i]);
    memory.set(p, value);
  }
  evaluation.forward(data.batch, memory.weights());
  for (int i = 0; i < 64 * 3; ++i)
    CHECK(std::abs(training.outputs()[i] - evaluation.outputs()[i]) < 0.03f);  // 64 / 63
}

TEST_CASE("a batch of one row leaves the running statistics unchanged", "[batch_norm]") {
  const auto model = regressor({batch_norm()}, {3}, 3);
  Memory memory(model);
  memory.initialize(1);
  memory.set(2, {0.25f, -0.5f, 7});
  memory.set(3, {4, 0.01f, 2});
  Pass pass(model, 1, true);
  const RandomBatch data(*model, 1, 3);
  pass.forward(data.batch, memory.weights());
  run_backward(pass, memory);
  // An average that moves towards its own value does not change.
  CHECK(memory.gradient(2) == memory.weight(2));
  CHECK(memory.gradient(3) == memory.weight(3));
}
