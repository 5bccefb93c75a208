// Clipped gradients and parameter groups in whole runs.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

std::vector<float> trained(const Plan& plan, std::uint64_t interleaving = 1) {
  const auto job = job_of(plan);
  TestHost host(job, interleaving);
  observe_all(host, job);
  const RunTotals totals = host.run();
  LW_CHECK(totals.end.reason == msg::RunEnded::Reason::finished, totals.end.text);
  return floats_of(totals.weights);
}

/// One step of plain gradient descent, so that weights show the gradient.
Plan one_step(Plan plan, std::uint32_t workers) {
  plan.consistency = plan::Bsp{};
  plan.workers = workers;
  plan.batch = 12 / workers;
  plan.optimizer = {1, 0, plan::Sgd{}};
  plan.stop = {.iterations = workers};
  plan.stop.epochs = 0;
  return plan;
}

std::vector<double> step_of(const Plan& plan) {
  Plan still = plan;
  still.optimizer.learning_rate = 1e-30;
  const auto before = trained(still), after = trained(plan);
  std::vector<double> step;
  for (std::size_t i = 0; i < before.size(); ++i)
    step.push_back(static_cast<double>(after[i]) - static_cast<double>(before[i]));
  return step;
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

/// Requires that the clipped step is the plain one times PyTorch's factor.
void check_scaled(const Plan& plain, double most) {
  Plan clipped = plain;
  clipped.optimizer.clip_norm = most;
  const auto step = step_of(plain), scaled = step_of(clipped);
  const double factor = std::min(1.0, most / (norm_of(step) + 1e-6));
  CAPTURE(norm_of(step), most, factor);
  REQUIRE(norm_of(step) > 0.1);
  for (std::size_t i = 0; i < step.size(); ++i)
    CHECK(std::abs(scaled[i] - factor * step[i]) < 1e-6);
}

}  // namespace

TEST_CASE("under bsp, a round is scaled as by clip_grad_norm_, on any number of actors") {
  for (const std::uint32_t workers : {1u, 3u})
    for (const std::uint32_t shards : {1u, 2u, 3u}) {
      Plan plan = one_step(tiny_plan(), workers);
      plan.shards = shards;
      CAPTURE(workers, shards);
      check_scaled(plan, 0.05);
      check_scaled(plan, 1000);
    }
}

TEST_CASE("the norm of a round includes all stages, and tied gradients once") {
  Plan plan = one_step(text_plan(), 2);
  plan.shards = 3;
  check_scaled(plan, 0.02);
  plan = one_step(text_plan(), 4);
  plan.pipeline.stages = 2;
  plan.shards = 3;
  plan.stop.iterations = 2;
  check_scaled(plan, 0.02);
}

TEST_CASE("without a staleness of rounds, each push is scaled by its norm") {
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Ssp{0}), plan::Consistency(plan::Asp{}),
        plan::Consistency(plan::Adaptive{1, 2})}) {
    Plan plan = one_step(tiny_plan(), 1);
    plan.consistency = policy;
    plan.shards = 2;
    check_scaled(plan, 0.05);
    check_scaled(plan, 1000);
  }
}

TEST_CASE("the limit holds for each push under asp, and for the sum of a round under bsp") {
  // Pushes in different directions: their sum is shorter than the sum of their norms.
  Plan plan = one_step(tiny_plan(), 2);
  plan.shards = 2;
  plan.optimizer.clip_norm = 0.01;
  CHECK(norm_of(step_of(plan)) == Approx(0.01).epsilon(1e-3));
  plan.consistency = plan::Asp{};
  CHECK(norm_of(step_of(plan)) < 0.0099);
}

TEST_CASE("clipped bsp with N workers equals one worker with N micro-batches, bit for bit") {
  const auto plan_of = [](std::uint32_t workers, std::uint32_t batch) {
    Plan plan = tiny_plan();
    plan.consistency = plan::Bsp{};
    plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
    plan.optimizer.clip_norm = 0.1;
    plan.optimizer.clip_value = 0.03;
    plan.workers = workers;
    plan.batch = batch;
    return plan;
  };
  Plan one = plan_of(1, 12);
  one.micro_batches = 3;
  const auto expected = trained(one);
  for (std::uint64_t interleaving = 1; interleaving <= 10; ++interleaving)
    CHECK(same_bits(trained(plan_of(3, 4), interleaving), expected));
  one.optimizer.clip_norm = 0;
  CHECK_FALSE(same_bits(trained(one), expected));
}

TEST_CASE("an element of a gradient is limited to the value of the plan") {
  Plan plan = one_step(tiny_plan(), 3);
  const auto step = step_of(plan);
  plan.optimizer.clip_value = 0.01;
  const auto clipped = step_of(plan);
  bool limits = false;
  for (std::size_t i = 0; i < step.size(); ++i) {
    CHECK(std::abs(clipped[i] - std::clamp(step[i], -0.01, 0.01)) < 1e-6);
    limits |= std::abs(step[i]) > 0.01;
  }
  CHECK(limits);
}

TEST_CASE("a parameter group trains with its factor of the learning rate, and 0 keeps it") {
  Plan plan = one_step(tiny_plan(), 3);
  const auto job = job_of(plan);
  const auto step = step_of(plan);
  plan.optimizer.groups = {{"0.weight", 0}, {"*.bias", 0.5}};
  const auto grouped = step_of(plan);
  std::size_t first = 0;
  for (const Block& block : job->layout->blocks()) {
    for (const BlockSlice& slice : block.slices) {
      const Parameter& parameter =
          job->model->parameters()[static_cast<std::size_t>(slice.parameter)];
      const double factor = parameter.name == "0.weight"        ? 0
                            : parameter.name.ends_with(".bias") ? 0.5
                                                                : 1;
      const auto begin = first + static_cast<std::size_t>(slice.offset);
      for (std::size_t i = begin; i < begin + static_cast<std::size_t>(slice.floats); ++i)
        CHECK(std::abs(grouped[i] - factor * step[i]) < 1e-6);
    }
    first += static_cast<std::size_t>(block.floats);
  }
}

TEST_CASE("groups with the factors 1 leave every bit, and no_decay_on_biases only weights") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.optimizer = {0.05, 0.1, plan::Adam{}};
  const auto plain = trained(plan);
  plan.optimizer.groups = {{"0.*", 1, 1}, {"*", 1, 1}};
  CHECK(same_bits(trained(plan), plain));
  plan.optimizer.groups.clear();
  plan.optimizer.no_decay_on_biases = true;
  const auto weights_only = trained(plan);
  CHECK_FALSE(same_bits(weights_only, plain));
  plan.optimizer.no_decay_on_biases = false;
  plan.optimizer.groups = {{"*.bias", 1, 0}};
  CHECK(same_bits(trained(plan), weights_only));
}

TEST_CASE("a pattern that matches no parameter is refused") {
  Plan plan = tiny_plan();
  plan.optimizer.groups = {{"0.*, 7.weight", 0.1}};
  auto data = load_data(plan.data, plan.seed);
  const auto job = make_job(plan, std::move(*data));
  REQUIRE_FALSE(job);
  CHECK_THAT(job.error().text,
             Catch::Contains("optimizer.groups[0].names: \"7.weight\" matches no parameter; the "
                             "model has 0.weight, 0.bias, 2.weight"));
}

}  // namespace leeway::test
