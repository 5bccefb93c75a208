// Local steps in whole runs.
#include <catch2/catch.hpp>

#include <cmath>

#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/shard_optimizer.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

std::vector<float> weights_after(const Plan& plan) {
  const auto job = job_of(plan);
  TestHost host(job, 1);
  observe_all(host, job);
  const RunTotals totals = host.run();
  LW_CHECK(totals.end.reason == msg::RunEnded::Reason::finished, totals.end.text);
  return floats_of(totals.weights);
}

/// Iterations of one worker that pushes gradients.
Plan alone(std::uint64_t iterations) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = 1;
  plan.stop = {.iterations = iterations};
  plan.stop.epochs = 0;
  return plan;
}

/// The same training in iterations of `steps` local steps.
Plan in_local_steps(Plan plan, std::uint32_t steps) {
  plan.local_steps.count = steps;
  plan.stop.iterations /= steps;
  return plan;
}

void require_close(const std::vector<float>& a, const std::vector<float>& b, double most = 2e-6) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) < most);
  }
}

/// Requires that a single worker gets the same weights by local steps, and others by fewer steps.
void require_same_training(const Plan& plan, std::uint32_t steps) {
  const auto pushed = weights_after(plan);
  require_close(weights_after(in_local_steps(plan, steps)), pushed);
  Plan shorter = plan;
  shorter.stop.iterations -= steps;
  const auto before = weights_after(shorter);
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(before[i] - pushed[i])));
  REQUIRE(largest > 1e-4);
}

}  // namespace

TEST_CASE("a single worker trains the same by local steps, with each optimizer", "[local]") {
  const plan::OptimizerKind kinds[] = {plan::DelayedNesterov{},
                                       plan::Adam{.amsgrad = true},
                                       plan::Sgd{},
                                       plan::Momentum{},
                                       plan::Nesterov{},
                                       plan::Adam{},
                                       plan::AdamW{},
                                       plan::AdaGrad{.initial = 1},
                                       plan::NAdam{},
                                       plan::Lion{},
                                       plan::Muon{}};
  for (const auto& kind : kinds) {
    CAPTURE(kind.index());
    Plan plan = alone(24);
    plan.optimizer = {0.01, 0.001, kind};
    require_same_training(plan, 4);
  }
}

TEST_CASE("local steps clip, follow the lr schedule, and know parameter groups", "[local]") {
  Plan plan = alone(50);  // beyond the first epoch
  plan.optimizer = {0.05, 0.001, plan::Momentum{}};
  plan.optimizer.clip_norm = 0.3;
  plan.optimizer.groups = {{.names = "*.bias", .rate = 0.5, .decay = 0}};
  plan.lr_schedule.warmup = 0.3;
  plan.lr_schedule.kind = plan::Step{.every = 1, .factor = 0.3};
  require_same_training(plan, 5);
  plan.optimizer.clip_norm = 0;
  plan.optimizer.clip_value = 0.02;
  require_same_training(plan, 5);
}

TEST_CASE("local steps average the statistics of batch norm, and keep frozen layers", "[local]") {
  Plan plan = alone(8);
  plan.batch = 6;
  plan.micro_batches = 2;
  plan.model = {plan::Linear{6}, plan::BatchNorm{}, plan::Relu{},
                plan::Linear{5}, plan::Relu{},      plan::Linear{3}};
  require_same_training(plan, 4);
  plan.fine_tuning.freeze = "0";
  require_same_training(plan, 4);
}

TEST_CASE("the last iteration of an epoch has fewer local steps", "[local]") {
  Plan plan = alone(0);
  plan.stop = {.epochs = 2};  // 30 batches each
  const auto pushed = weights_after(plan);
  plan.local_steps.count = 8;
  require_close(weights_after(plan), pushed);
}

TEST_CASE("statistics stay averages of the workers' batches, however old a push is", "[local]") {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{6}, plan::BatchNorm{}, plan::Relu{}, plan::Linear{3}};
  plan.consistency = plan::Asp{};
  plan.workers = 4;
  plan.batch = 3;
  plan.local_steps.count = 5;
  plan.optimizer.learning_rate = 1e-6;  // so that all batches have about the same statistics
  plan.stop.epochs = 12;
  for (const bool whole_steps : {false, true}) {
    plan.optimizer.whole_steps = whole_steps;
    const auto job = job_of(plan);
    TestHost host(job, 1);
    const RunTotals totals = host.run();
    std::size_t variances = 0;
    for (const Block& block : job->layout->blocks())
      for (const BlockSlice& slice : block.slices) {
        const auto& parameter = job->model->parameters()[static_cast<std::size_t>(slice.parameter)];
        if (!parameter.name.ends_with("running_var")) continue;
        const float* const values = totals.weights[block.id.value()].as_floats() + slice.offset;
        for (std::int64_t i = 0; i < slice.rows; ++i, ++variances)
          CHECK((values[i] > 0.01f && values[i] < 1000));
      }
    CHECK(variances == 6);
  }
}

TEST_CASE("one local step of sgd is a gradient", "[local]") {
  Plan plan = alone(36);
  plan.workers = 3;
  require_close(weights_after(in_local_steps(plan, 1)), weights_after(plan));
  plan.consistency = plan::Asp{};
  plan.workers = 1;
  require_close(weights_after(in_local_steps(plan, 1)), weights_after(plan));
}

TEST_CASE("the outer optimizer takes the mean change as its gradient", "[local]") {
  Plan still = in_local_steps(alone(12), 4);  // a round of three workers
  still.workers = 3;
  still.local_steps.outer.learning_rate = 1e-30;
  Plan plan = still;
  plan.local_steps.outer.learning_rate = 1;
  const auto before = weights_after(still), averaged = weights_after(plan);
  plan.local_steps.outer = {.learning_rate = 0.7, .kind = plan::Nesterov{0.9}};
  const auto after = weights_after(plan);
  double largest = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double change = static_cast<double>(averaged[i]) - static_cast<double>(before[i]);
    largest = std::max(largest, std::abs(change));
    CHECK(std::abs(static_cast<double>(after[i]) - static_cast<double>(before[i]) -
                   0.7 * 1.9 * change) < 2e-6);
  }
  REQUIRE(largest > 1e-3);
}

TEST_CASE("plans whose workers cannot take local steps are refused", "[local]") {
  const auto refused = [](auto change) {
    Plan plan = tiny_plan();
    plan.local_steps.count = 4;
    change(plan);
    const Status fits = check_local_steps(plan);
    return fits ? std::string("fits") : fits.error().text;
  };
  using Catch::Contains;
  CHECK(refused([](Plan&) {}) == "fits");
  CHECK_THAT(refused([](Plan& plan) { plan.local_steps.count = 0; }), Contains("fits"));
  CHECK_THAT(refused([](Plan& plan) { plan.local_steps = {.outer = {.kind = plan::Adam{}}}; }),
             Contains("give --local-steps 1 or more"));
  CHECK_THAT(
      refused([](Plan& plan) { plan.local_steps = {.merge = plan::Merge::radial_directional}; }),
      Contains("there are no pseudo-gradients"));
  CHECK_THAT(refused([](Plan& plan) {
               plan.consistency = plan::Asp{};
               plan.local_steps.merge = plan::Merge::radial_directional;
             }),
             Contains("give --staleness bsp, backup(N) or quorum(K)"));
  CHECK_THAT(refused([](Plan& plan) { plan.pipeline.stages = 3; }), Contains("give --stages 1"));
  CHECK_THAT(refused([](Plan& plan) { plan.optimizer.kind = plan::Sum{}; }),
             Contains("take no steps on a copy"));
  CHECK_THAT(refused([](Plan& plan) { plan.optimizer.eight_bit_state = true; }),
             Contains("leave out --eight-bit-state"));
  Plan plan = tiny_plan();
  plan.local_steps.count = 4;
  plan.delay_policy = plan::DelayCompensated{};
  CHECK_THAT(check_delay_policy(plan).error().text, Contains("it predicts gradients"));
  plan.lease_size = 7;
  REQUIRE_FALSE(validate(plan));
  CHECK_THAT(validate(plan).error().text, Contains("give at least 8, or 0 for one iteration"));
}

}  // namespace leeway::test
