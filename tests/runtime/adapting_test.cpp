// Settings that adapt during a run, in virtual time: the staleness bound and the batch sizes.
#include <algorithm>
#include <catch2/catch.hpp>

#include "leeway.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Steps of about a millisecond on four nodes; the network takes a tenth of that.
Plan plan_of(plan::Consistency policy) {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{64'000, 20, plan::Clusters{10, 64, 3}};
  plan.model = {plan::Linear{128}, plan::Relu{}, plan::Linear{10}};
  plan.consistency = policy;
  plan.workers = 4;
  plan.batch = 16;
  plan.simulated = plan::World{.speed = 1, .cost_only = true};
  return plan;
}

Result simulated(const Plan& plan) {
  auto result = run(plan, {.quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 2 * 64'000);
  return result;
}

const plan::Straggler kTails{.all = true, .kind = plan::Pareto{1.5, 20}};
const plan::Straggler kPauses{.all = true, .kind = plan::Pauses{10, std::uint32_t{40}}};
const plan::Straggler kSlowWorker{.worker = 3, .kind = plan::ConstantFactor{4}};

}  // namespace

TEST_CASE("with temporary stragglers, adaptive is nearly as fast as its largest bound") {
  for (const auto& straggler : {kTails, kPauses}) {
    const auto time_of = [&](plan::Consistency policy) {
      Plan plan = plan_of(policy);
      plan.stragglers = {straggler};
      return simulated(plan).seconds;
    };
    const double low = time_of(ssp(1)), high = time_of(ssp(8));
    CHECK(time_of(adaptive(1, 8)) < high + 0.25 * (low - high));
  }
}

TEST_CASE("without stragglers, adaptive stays at its smallest bound") {
  Plan plan = plan_of(adaptive(1, 8));
  const auto result = simulated(plan);
  CHECK(result.totals.last.staleness == 1);
  CHECK(result.max_clock_gap <= 2);
  CHECK(result.staleness_bound == 8);
}

TEST_CASE("a bound that rose in a slow period falls after it") {
  Plan plan = plan_of(adaptive(1, 8));
  plan.stragglers = {{.worker = 3, .kind = plan::Sharing{4, 200, 600}}};
  const auto result = simulated(plan);
  CHECK(result.max_clock_gap > 6);
  CHECK(result.max_clock_gap <= 9);
  std::uint32_t highest = 0;
  bool fell = false;
  for (const auto& progress : result.history) {
    highest = std::max(highest, progress.staleness);
    fell |= highest > 5 && progress.staleness == 1;
  }
  CHECK(fell);
}

TEST_CASE("with a worker that is always slow, balance by speed is faster than any bound") {
  const auto time_of = [](plan::Consistency policy, plan::Balance balance) {
    Plan plan = plan_of(policy);
    plan.balance = balance;
    plan.stragglers = {kSlowWorker};
    return simulated(plan).seconds;
  };
  for (const auto& policy : {bsp(), ssp(4), adaptive(1, 8)}) {
    const double equal = time_of(policy, plan::Balance::equal);
    const double by_speed = time_of(policy, plan::Balance::by_speed);
    CHECK(equal > 1.8 * by_speed);
  }
}

TEST_CASE("a run that stops does not wait for the grace window of its round") {
  Plan plan = plan_of(quorum(2, 60e3));
  plan.stragglers = {{.worker = 3, .kind = plan::ConstantFactor{1e5}}};
  plan.stop = {.seconds = 1};
  const auto result = run(plan, {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.seconds < 1.1);
}

TEST_CASE("a worker whose pushes are always dropped gets fewer samples, and contributes") {
  const auto with_balance = [](plan::Balance balance) {
    Plan plan = plan_of(backup(1));
    plan.balance = balance;
    plan.stragglers = {kSlowWorker};
    return simulated(plan);
  };
  const auto equal = with_balance(plan::Balance::equal);
  const auto by_speed = with_balance(plan::Balance::by_speed);
  const auto samples_of_slow = [](const Result& result) {
    return result.totals.workers.at(3).samples;
  };
  CHECK(samples_of_slow(equal) < 64'000 / 100);
  // In two epochs, its share by speed is 2 * 64'000 / 13.
  CHECK(samples_of_slow(by_speed) > 64'000 / 13);
}

}  // namespace leeway::test
