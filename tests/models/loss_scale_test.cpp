// Batch::loss_scale: a factor of the gradients that starts at the loss.
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

constexpr float kScale = 1024;

/// Runs a step with this loss scale. Returns its loss; the gradients are in `memory`.
double step(const std::shared_ptr<const Model>& model, Memory& memory, Batch batch, float scale) {
  batch.loss_scale = scale;
  Pass pass(model, batch.size, true);
  const double loss = pass.forward(batch, memory.weights()).loss;
  run_backward(pass, memory);
  return loss;
}

/// Checks that the gradients of a step with kScale are those of a step without it, times kScale.
void check_scaled(const std::shared_ptr<const Model>& model) {
  kernels::use_one_compute_thread();
  Memory plain(model), scaled(model);
  plain.initialize(1);
  scaled.initialize(1);
  const RandomBatch data(*model, 7, 2);
  CHECK(step(model, plain, data.batch, 1) == step(model, scaled, data.batch, kScale));
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    INFO(model->parameters()[p].name);
    const bool is_statistic = model->parameters()[p].spec.average > 0;
    Floats expected = plain.gradient(p);
    if (!is_statistic)
      for (float& value : expected) value *= kScale;
    CHECK(scaled.gradient(p) == expected);
  }
}

}  // namespace

TEST_CASE("a loss scale multiplies the gradients of every loss, and no loss", "[loss]") {
  const Layers layers = {linear(6), relu(), linear(3)};
  check_scaled(classifier(layers, {5}, 3));
  check_scaled(regressor(layers, {5}, 3));
  check_scaled(built(layers, plan::Loss::sigmoid_cross_entropy, {5}, 0, 3));
}

TEST_CASE("a loss scale multiplies the gradients of all layers, but no statistics", "[loss]") {
  check_scaled(classifier({conv2d(4, 3), batch_norm(), relu(), max_pool(2),
                           residual({conv2d(4, 1), relu()}), flatten(), linear(3)},
                          {2, 10, 10}, 3));
  check_scaled(classifier({linear(6), layer_norm(), gelu(), dropout(0.25),
                           residual({linear(6), tanh_layer()}), linear(3)},
                          {5}, 3));
}

TEST_CASE("the gradient between two chunks is scaled, also if forward runs again", "[loss]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({linear(6), relu(), linear(4), relu(), linear(3)}, {5}, 3);
  Memory plain(model), scaled(model);
  plain.initialize(1);
  scaled.initialize(1);
  const RandomBatch data(*model, 7, 2);
  step(model, plain, data.batch, 1);
  ChunkPass first(model, {0, 2}, 7, true, {.recompute = true});
  ChunkPass last(model, {2, 5}, 7, true, {.recompute = true});
  Stash &of_first = first.take_stash(), &of_last = last.take_stash();
  Batch batch = data.batch;
  batch.loss_scale = kScale;
  const Blob y = first.start_forward(of_first, {.batch = batch, .input = {}}, scaled.weights());
  last.start_forward(of_last, {.batch = batch, .input = y}, scaled.weights());
  const Blob dy =
      last.backward(of_last, BackwardFor::both, {}, scaled.weights(), scaled.gradients());
  first.backward(of_first, BackwardFor::both, dy, scaled.weights(), scaled.gradients());
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    Floats expected = plain.gradient(p);
    for (float& value : expected) value *= kScale;
    CHECK(scaled.gradient(p) == expected);
  }
}

TEST_CASE("a loss scale keeps gradients that fp16 rounds to 0", "[loss]") {
  kernels::use_one_compute_thread();
  const auto model = Model::build({linear(3)}, kSquares, {5}, 0, 3, 1, {}, {Precision::fp16});
  REQUIRE(model);
  RandomBatch data(**model, 4, 2);
  // The weights are 0, so the gradient of an output is 2 / 12 of its target: less than half of
  // fp16's smallest number.
  std::fill(data.targets.begin(), data.targets.end(), 1e-7f);
  const auto weight_gradient = [&](float scale) {
    Memory memory(*model);
    step(*model, memory, data.batch, scale);
    return memory.gradient(0);
  };
  const Floats zeros(15);
  CHECK(weight_gradient(1) == zeros);
  const Floats scaled = weight_gradient(kScale);
  CHECK(std::count(scaled.begin(), scaled.end(), 0.0f) == 0);
}
