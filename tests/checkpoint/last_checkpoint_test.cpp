// The checkpoint with which a run ends: at Ctrl-C, when it fails, and at its end.
#include <catch2/catch.hpp>

#include "tests/checkpoint/resumed_run.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::test {
namespace {

constexpr std::uint64_t kNoInterval = 1'000'000;  // iterations: beyond the end of every run here

Plan slow_plan(plan::Consistency consistency, bool piped = false) {
  Plan plan = piped ? text_plan() : tiny_plan();
  plan.consistency = consistency;
  compute_slowly(plan);
  if (piped) {
    plan.simulated->speed = 1e-3;  // the snapshot is taken before the time limit of an interrupt
    plan.workers = 4;
    plan.pipeline.stages = 2;
    plan.shards = 2;
  }
  return plan;
}

/// The checkpoints on a disk; none before the first file.
std::vector<std::uint64_t> stored_on(const Disk& disk) {
  const auto numbers = disk.store->numbers();
  return numbers ? *numbers : std::vector<std::uint64_t>();
}

/// Runs the job under all checkers to its end, and interrupts it after `steps` steps.
RunTotals run_and_interrupt(const std::shared_ptr<const Job>& job, int steps) {
  sim::Simulation simulation(job, {});
  simulation.start();
  bool more = true;
  for (int step = 0; more && !simulation.ended(); ++step) {
    if (step == steps)
      simulation.host().send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
    more = simulation.step();
  }
  LW_CHECK(simulation.ended(), simulation.stuck(more));
  return simulation.totals();
}

RunTotals run_to_end(const std::shared_ptr<const Job>& job) {
  return run_and_interrupt(job, -1);
}

}  // namespace

TEST_CASE("under bsp, a run that is interrupted and resumed equals an uninterrupted one") {
  for (const bool piped : {false, true}) {
    const Plan plan = slow_plan(plan::Bsp{}, piped);
    const RunTotals whole = run(plan, Disk(), kNoInterval);
    for (const int steps : {60, 200, 333, 500, 777}) {
      const Disk disk;
      const RunTotals cut = run_and_interrupt(job_with(plan, disk, kNoInterval), steps);
      INFO((piped ? "pipelined" : "plain") << ", interrupted after " << steps << " steps");
      REQUIRE(cut.end.reason == msg::RunEnded::Reason::interrupted);
      const auto numbers = stored_on(disk);
      REQUIRE(numbers.size() == 1);
      const RunTotals resumed = run(plan, disk, kNoInterval, numbers.back());
      CHECK(floats_of(resumed.weights) == floats_of(whole.weights));
    }
  }
}

TEST_CASE("under any policy, a run that is interrupted and resumed trains every sample once") {
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Asp{}),
        plan::Consistency(plan::Backup{1}), plan::Consistency(plan::Adaptive{1, 4})})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Plan plan = slow_plan(policy);
      plan.seed = seed;
      const Disk disk;
      run_and_interrupt(job_with(plan, disk, kNoInterval), static_cast<int>(100 + 60 * seed));
      const auto numbers = stored_on(disk);
      INFO(plan.seed);
      REQUIRE(numbers.size() == 1);
      run(plan, disk, kNoInterval, numbers.back());
    }
}

TEST_CASE("an interrupt before the first iteration ends the run without a checkpoint") {
  const Disk disk;
  const RunTotals totals =
      run_and_interrupt(job_with(slow_plan(plan::Bsp{}), disk, kNoInterval), 0);
  CHECK(totals.end.reason == msg::RunEnded::Reason::interrupted);
  CHECK(stored_on(disk).empty());
}

TEST_CASE("a run whose workers have all ended stores the state that they left") {
  int stored = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Plan plan = slow_plan(plan::Ssp{2});
    plan.seed = seed;
    const Plan without_faults = plan;
    for (std::uint32_t worker = 0; worker < plan.workers; ++worker)
      plan.faults.push_back({.actor = address_of(WorkerId(worker)),
                             .at = std::int64_t{4 + worker},
                             .kind = plan::Crash{}});
    const Disk disk;
    const RunTotals totals = run_to_end(job_with(plan, disk, kNoInterval));
    REQUIRE(totals.end.reason == msg::RunEnded::Reason::failed);
    const auto numbers = stored_on(disk);
    if (numbers.empty()) continue;  // a partial push is left
    ++stored;
    run(without_faults, disk, kNoInterval, numbers.back());
  }
  CHECK(stored > 0);
}

TEST_CASE("a run that diverges stores nothing at its end") {
  Plan plan = slow_plan(plan::Bsp{});
  plan.optimizer.learning_rate = 1e18;
  const Disk disk;
  const RunTotals totals = run_to_end(job_with(plan, disk, kNoInterval));
  REQUIRE(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(stored_on(disk).empty());
}

TEST_CASE("a run that has ended continues with more epochs") {
  Plan plan = slow_plan(plan::Bsp{});
  plan.stop.epochs = 3;
  const RunTotals whole = run(plan, Disk(), kNoInterval);
  const Disk disk;
  plan.stop.epochs = 2;
  run(plan, disk, kNoInterval);
  plan.stop.epochs = 3;
  const RunTotals resumed = run(plan, disk, kNoInterval, stored_on(disk).back());
  CHECK(floats_of(resumed.weights) == floats_of(whole.weights));
}

}  // namespace leeway::test
