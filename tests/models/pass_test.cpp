#include "models/pass.hpp"

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

Floats outputs_of(const Pass& pass, std::int64_t batch) {
  return {pass.outputs(), pass.outputs() + batch * pass.model().output().count()};
}

/// A model with packed weights: the first convolution packs them for forward, the second also for
/// its input's gradient.
std::shared_ptr<const Model> convolutions() {
  return classifier({conv2d(8, 3), relu(), conv2d(8, 3), flatten(), linear(3)}, {4, 8, 8}, 3);
}

struct Weights {
  Weights(const std::shared_ptr<const Model>& model, std::uint64_t seed) : memory(model) {
    memory.initialize(seed);
    versions.assign(model->parameters().size(), seed);
  }
  Memory memory;
  std::vector<std::uint64_t> versions;
};

/// Outputs and all gradients.
std::vector<Floats> results(Pass& pass, Weights& weights, const RandomBatch& data,
                            std::span<const std::uint64_t> versions) {
  pass.forward(data.batch, weights.memory.weights(), versions);
  std::vector<Floats> all = {outputs_of(pass, data.batch.size)};
  run_backward(pass, weights.memory);
  for (std::size_t p = 0; p < pass.model().parameters().size(); ++p)
    all.push_back(weights.memory.gradient(p));
  return all;
}

}  // namespace

TEST_CASE("without dropout and batch_norm, evaluation gives the results of training", "[pass]") {
  kernels::use_one_compute_thread();
  const std::vector<std::pair<Layers, Shape>> models = {
      {{linear(6), relu(), linear(6), gelu(), linear(6), tanh_layer(), sigmoid_layer()}, {5}},
      {{linear(6), residual({relu(), linear(6), residual({tanh_layer()})}, {gelu()}), relu()}, {5}},
      {{residual({relu(), linear(5)}), residual({}), residual({linear(5), relu()})}, {5}},
      {{conv2d(4, 3), relu(), max_pool(2), residual({conv2d(4, 1), relu()}), avg_pool(2),
        flatten()},
       {2, 10, 10}},
      {{linear(7), layer_norm(), gelu(), linear(2), layer_norm(), flatten()}, {60, 5}}};
  for (const auto& [layers, input] : models) {
    Layers all = layers;
    all.push_back(linear(3));
    const auto model = classifier(all, input, 3);
    CAPTURE(model->layers(), input);
    Weights weights(model, 1);
    const RandomBatch data(*model, 33, 1);
    Pass training(model, 40, true), evaluation(model, 33, false);
    const auto a = training.forward(data.batch, weights.memory.weights());
    const auto b = evaluation.forward(data.batch, weights.memory.weights());
    CHECK(a.loss == b.loss);
    CHECK(a.correct == b.correct);
    CHECK(outputs_of(training, 33) == outputs_of(evaluation, 33));
  }
}

TEST_CASE("evaluation of tokens gives the results of training", "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({embedding(9, 4), layer_norm(), flatten(), linear(3)}, {6}, 3);
  Weights weights(model, 1);
  RandomBatch data(*model, 5, 1);
  for (std::size_t i = 0; i < data.x.size(); ++i) data.x[i] = static_cast<float>(i % 9);
  Pass training(model, 5, true), evaluation(model, 5, false);
  const double loss = training.forward(data.batch, weights.memory.weights()).loss;
  CHECK(std::isfinite(loss));
  CHECK(evaluation.forward(data.batch, weights.memory.weights()).loss == loss);
}

TEST_CASE("dropout is off in evaluation, and depends on sample keys in training", "[pass]") {
  kernels::use_one_compute_thread();
  const auto with = classifier({linear(30), dropout(0.5), linear(3)}, {5}, 3);
  const auto plain = classifier({linear(30), linear(3)}, {5}, 3);
  Weights weights(with, 1), same(plain, 1);
  for (std::size_t p = 0; p < 4; ++p) same.memory.set(p, weights.memory.weight(p));
  RandomBatch data(*with, 6, 1);
  Pass training(with, 6, true), evaluation(with, 6, false), reference(plain, 6, false);
  const auto outputs = [&](Pass& pass, Weights& of) {
    pass.forward(data.batch, of.memory.weights());
    return outputs_of(pass, 6);
  };
  const Floats expected = outputs(reference, same);
  const Floats masked = outputs(training, weights);
  CHECK(masked != expected);
  CHECK(outputs(training, weights) == masked);
  ++data.keys[5];
  const Floats other = outputs(training, weights);
  CHECK(std::equal(masked.begin(), masked.begin() + 15, other.begin()));
  CHECK_FALSE(std::equal(masked.begin() + 15, masked.end(), other.begin() + 15));
  data.batch.sample_keys = {};
  CHECK(outputs(evaluation, weights) == expected);
}

TEST_CASE("two dropout layers of a model have different masks", "[pass]") {
  kernels::use_one_compute_thread();
  // With equal masks, half of the values would be zero.
  const auto model = regressor({dropout(0.5), dropout(0.5)}, {4000}, 4000);
  Memory memory(model);
  const RandomBatch data(*model, 1, 1);
  Pass pass(model, 1, true);
  pass.forward(data.batch, memory.weights());
  const Floats y = outputs_of(pass, 1);
  const auto zeros = std::count(y.begin(), y.end(), 0.0f);
  CHECK(zeros > 2850);  // 3000 are expected, with a deviation of 27
  CHECK(zeros < 3150);
}

TEST_CASE("two passes that share a cache pack the weights of a version once", "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = convolutions();
  Weights weights(model, 1);
  const RandomBatch data(*model, 4, 1);
  const auto cache = std::make_shared<PackCache>(2);
  Pass one(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  Pass other(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  const auto first = results(one, weights, data, weights.versions);
  const std::uint64_t packed = cache->packed();
  CHECK(packed >= 2);
  CHECK(packed <= 3);
  CHECK((results(other, weights, data, weights.versions) == first));
  CHECK((results(one, weights, data, weights.versions) == first));
  CHECK(cache->packed() == packed);
}

TEST_CASE("a cache never serves the weights of another version", "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = convolutions();
  const RandomBatch data(*model, 4, 1);
  const auto cache = std::make_shared<PackCache>(2);
  Pass one(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  Pass other(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  for (const std::uint64_t seed : {1, 2, 1, 3, 4, 2, 1, 4}) {  // some recur after they were dropped
    CAPTURE(seed);
    Weights weights(model, seed);
    Pass fresh(model, 4, true);
    const auto expected = results(fresh, weights, data, {});
    CHECK((results(one, weights, data, weights.versions) == expected));
    CHECK((results(other, weights, data, weights.versions) == expected));
  }
}

TEST_CASE("backward uses the weights of its forward while other passes use newer ones", "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = convolutions();
  const RandomBatch data(*model, 4, 1);
  const auto cache = std::make_shared<PackCache>(1);
  Pass one(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  Pass other(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  Pass fresh(model, 4, true);
  Weights weights(model, 1);
  const auto expected = results(fresh, weights, data, {});
  one.forward(data.batch, weights.memory.weights(), weights.versions);
  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    Weights newer(model, seed);
    results(other, newer, data, newer.versions);
  }
  CHECK(outputs_of(one, 4) == expected[0]);
  run_backward(one, weights.memory);
  for (std::size_t p = 0; p < model->parameters().size(); ++p)
    CHECK(weights.memory.gradient(p) == expected[p + 1]);
}

TEST_CASE("without versions weights are packed for each forward, even with a shared cache",
          "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = convolutions();
  const RandomBatch data(*model, 4, 1);
  const auto cache = std::make_shared<PackCache>(4);
  Pass one(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  Pass other(model, 4, true, {.on = nullptr, .packed = cache, .profile = nullptr});
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    CAPTURE(seed);
    Weights weights(model, seed), newer(model, seed + 10);
    Pass fresh(model, 4, true);
    CHECK((results(one, weights, data, {}) == results(fresh, weights, data, {})));
    CHECK((results(other, newer, data, {}) == results(fresh, newer, data, {})));
    weights.versions.assign(weights.versions.size(), 1);  // the first version of a run
    if (seed == 1)
      CHECK((results(one, weights, data, weights.versions) == results(fresh, weights, data, {})));
  }
}

TEST_CASE("a pass gives the same results for fewer samples than its buffers hold", "[pass]") {
  kernels::use_one_compute_thread();
  const auto model = classifier({conv2d(3, 2), batch_norm(), relu(), max_pool(2),
                                 residual({conv2d(3, 1), batch_norm()}), flatten(), linear(3)},
                                {2, 5, 5}, 3);
  Weights weights(model, 1);
  const RandomBatch data(*model, 6, 1);
  Pass large(model, 50, true), exact(model, 6, true);
  CHECK((results(large, weights, data, {}) == results(exact, weights, data, {})));
}
