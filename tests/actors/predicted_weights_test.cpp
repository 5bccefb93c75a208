// Weights that are predicted for the update with the gradient of a stage.
#include "actors/shard/predicted_weights.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

using Catch::Matchers::Contains;

Plan stashing_plan(const plan::Optimizer& optimizer) {
  Plan plan = tiny_plan();
  plan.workers = 2;
  plan.shards = 1;
  plan.consistency = plan::Asp{};
  plan.pipeline = {.stages = 2, .schedule = "weight_stashing", .predict_weights = true};
  plan.optimizer = optimizer;
  return plan;
}

/// A block whose weight i is i, with optimizer state of these values.
BlockState state_of(const Job& job, std::vector<float> slots) {
  BlockState state;
  state.block = &job.layout->block(BlockId(0));
  state.progress = 3;
  const auto fill = [&](auto value_of) {
    Blob blob = Blob::floats(state.block->floats);
    for (std::int64_t i = 0; i < state.block->floats; ++i)
      blob.mutable_floats()[i] = value_of(static_cast<float>(i));
    return blob;
  };
  state.weights = fill([](float i) { return i; });
  for (const float slot : slots) state.slots.push_back(fill([=](float i) { return slot * i; }));
  return state;
}

std::vector<float> floats_of(const BlockState& state, const Blob& blob) {
  return {blob.as_floats(), blob.as_floats() + state.block->floats};
}

TEST_CASE("momentum predicts that the velocity stays: w - lr s m") {
  const auto kind = GENERATE(plan::Optimizer{0.05, 0, plan::Momentum{}},
                             plan::Optimizer{0.05, 0.01, plan::Nesterov{}});
  const auto job = job_of(stashing_plan(kind));
  const BlockState state = state_of(*job, {2});
  const auto before = floats_of(state, state.slots[0]);
  const auto predicted = floats_of(state, predicted_weights(*job, state, 3));
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const auto w = static_cast<float>(i);
    CHECK(predicted[i] == Approx(w - 0.05f * 3 * 2 * w));
  }
  CHECK(floats_of(state, state.slots[0]) == before);
  CHECK(floats_of(state, state.weights)[1] == 1);
}

TEST_CASE("adam predicts that both moments stay: w - lr s m^ / (sqrt(v^) + epsilon)") {
  const bool amsgrad = GENERATE(false, true);
  const plan::Adam adam{.amsgrad = amsgrad};
  const auto job = job_of(stashing_plan({0.05, 0, adam}));
  const BlockState state =
      state_of(*job, amsgrad ? std::vector<float>{0.5, 4, 9} : std::vector<float>{0.5, 4});
  const auto predicted = floats_of(state, predicted_weights(*job, state, 2));
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double w = static_cast<double>(i);
    const double m = 0.5 * w / (1 - std::pow(adam.beta1, 3));
    const double v = (amsgrad ? 9 : 4) * w / (1 - std::pow(adam.beta2, 3));
    CHECK(predicted[i] == Approx(w - 0.05 * 2 * m / (std::sqrt(v) + adam.epsilon)));
  }
}

TEST_CASE("without a lag, the weights are not copied") {
  const auto job = job_of(stashing_plan({0.05, 0, plan::Momentum{}}));
  const BlockState state = state_of(*job, {2});
  CHECK(predicted_weights(*job, state, 0).as_floats() == state.weights.as_floats());
}

TEST_CASE("a prediction without a lag or a velocity is refused") {
  const auto error_of = [](const Plan& plan) {
    if (const auto valid = validate(plan); !valid) return valid.error().text;
    auto data = load_data(plan.data, plan.seed);
    const auto job = make_job(plan, std::move(*data));
    return job ? std::string() : job.error().text;
  };
  CHECK_THAT(error_of(stashing_plan({0.05, 0, plan::Sgd{}})),
             Contains("sgd on the shards has no velocity"));
  Plan flushed = stashing_plan({0.05, 0, plan::Momentum{}});
  flushed.pipeline.schedule = "1f1b";
  CHECK_THAT(error_of(flushed), Contains("1f1b flushes the pipeline"));
  Plan delayed = stashing_plan({0.05, 0, plan::Momentum{}});
  delayed.delay_policy = plan::GapAware{};
  CHECK_THAT(error_of(delayed), Contains("leave out --predict-weights or --delay-policy"));
  Plan unpiped = stashing_plan({0.05, 0, plan::Momentum{}});
  unpiped.pipeline.stages = 1;
  unpiped.pipeline.schedule = "1f1b";
  CHECK_THAT(error_of(unpiped), Contains("there are no stages"));
}

}  // namespace
}  // namespace leeway::test
