// Standby shards in simulation: a run loses replicas of shards, and nothing that was acknowledged.
#include <catch2/catch.hpp>
#include <functional>

#include "sim/simulation.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

constexpr Address kShard0 = address_of(ShardId(0)), kStandby0 = standby_of(ShardId(0));

Plan replicated(plan::Consistency consistency) {
  Plan plan = tiny_plan();
  plan.replicas = 2;
  plan.consistency = std::move(consistency);
  plan.evaluate_every = 0.5;
  plan.simulated = plan::World{};
  return plan;
}

struct Case {
  const char* name;
  Plan plan;
  /// Whether the weights do not depend on times.
  bool exact() const { return std::holds_alternative<plan::Bsp>(plan.consistency); }
};

/// All policies, rounds with a limited norm, pipelines, host groups, and losses with a factor that
/// overflows.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made = {{"bsp", replicated(plan::Bsp{})},
                              {"ssp", replicated(plan::Ssp{1})},
                              {"asp", replicated(plan::Asp{})},
                              {"adaptive", replicated(plan::Adaptive{1, 3})},
                              {"backup", replicated(plan::Backup{1})},
                              {"limited norm", replicated(plan::Bsp{})},
                              {"prefetch", replicated(plan::Ssp{2})},
                              {"pipelines", replicated(plan::Bsp{})},
                              {"host groups", replicated(plan::Bsp{})},
                              {"fp16", replicated(plan::Bsp{})},
                              {"fp16 under ssp", replicated(plan::Ssp{1})}};
    made[5].plan.optimizer.clip_norm = 0.1;
    made[6].plan.prefetch = true;
    Plan& piped = made[7].plan;
    piped.workers = 4;
    piped.pipeline.stages = 2;
    piped.micro_batches = 2;
    made[8].plan.workers = 4;
    made[8].plan.aggregate = plan::GroupsOf{2};
    for (const std::size_t i : {9, 10}) {
      made[i].plan.precision = "fp16";
      made[i].plan.loss_scale = 16777216;
    }
    return made;
  }();
  return all;
}

struct Outcome {
  RunTotals totals;
  std::vector<float> weights;
  std::uint64_t steps = 0;
  std::size_t took_over = 0, standbys_lost = 0;
};

/// Runs a plan, and calls `disturb` before each step with the number of the steps so far.
Outcome run(const Plan& plan,
            const std::function<void(sim::Simulation&, std::uint64_t)>& disturb = {}) {
  const auto job = job_of(plan);
  Outcome out;
  sim::SimulationOptions options;
  options.on_event = [&](Address, Instant, const Event& event) {
    if (event.as<event::StandbyTookOver>()) ++out.took_over;
    if (event.as<event::StandbyLost>()) ++out.standbys_lost;
  };
  sim::Simulation simulation(job, {}, options);
  simulation.start();
  for (bool more = true; !simulation.ended();) {
    if (const std::string stuck = simulation.stuck(more); !stuck.empty()) FAIL(stuck);
    if (disturb) disturb(simulation, out.steps);
    more = simulation.step();
    ++out.steps;
  }
  out.totals = simulation.totals();
  if (!out.totals.weights.empty()) out.weights = weights_of(*job, out.totals.weights);
  return out;
}

Outcome run_and_kill(const Plan& plan, Address actor, std::uint64_t step) {
  return run(plan, [&](sim::Simulation& simulation, std::uint64_t at) {
    if (at == step) simulation.host().kill(actor, "the test has killed it");
  });
}

}  // namespace

TEST_CASE("with standby shards, a run without faults trains the same weights") {
  for (const Case& one : cases()) {
    INFO(one.name);
    const auto with = run(one.plan);
    CHECK(with.totals.end.reason == msg::RunEnded::Reason::finished);
    CHECK(with.took_over == 0);
    CHECK(with.totals.end.samples_trained == 120);
    if (!one.exact()) continue;
    Plan plan = one.plan;
    plan.replicas = 1;
    CHECK(with.weights == run(plan).weights);
  }
}

TEST_CASE("a primary may be lost before a step, and nothing else is") {
  std::uint64_t first = 0;  // another one for each case
  for (const Case& one : cases()) {
    const auto whole = run(one.plan);
    for (std::uint64_t step = first++; step < whole.steps; step += 11 * test::kThinning) {
      INFO(one.name << ", killed before step " << step << " of " << whole.steps);
      const auto out = run_and_kill(one.plan, kShard0, step);
      REQUIRE(out.totals.end.reason == msg::RunEnded::Reason::finished);
      REQUIRE(out.totals.end.samples_trained == 120);
      REQUIRE(out.totals.end.partial_pushes == 0);
      REQUIRE(!out.weights.empty());
      if (one.exact()) REQUIRE(out.weights == whole.weights);
    }
  }
}

TEST_CASE("a standby may be lost before a step, and the run continues without it") {
  std::uint64_t first = 0;
  for (const Case& one : cases()) {
    const auto whole = run(one.plan);
    for (std::uint64_t step = first++; step < whole.steps; step += 23 * test::kThinning) {
      INFO(one.name << ", killed before step " << step << " of " << whole.steps);
      const auto out = run_and_kill(one.plan, kStandby0, step);
      REQUIRE(out.totals.end.reason == msg::RunEnded::Reason::finished);
      REQUIRE(out.totals.end.samples_trained == 120);
      REQUIRE(!out.weights.empty());
      REQUIRE(out.took_over == 0);
    }
  }
}

TEST_CASE("a primary that only seems to be lost does not act when it is back") {
  const Plan plan = replicated(plan::Ssp{1});
  const auto out = run(plan, [](sim::Simulation& simulation, std::uint64_t step) {
    if (step == 200) simulation.host().freeze(kShard0);
    if (step == 1200) simulation.host().thaw(kShard0);
  });
  CHECK(out.took_over == 1);
  CHECK(out.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(out.totals.end.samples_trained == 120);
}

TEST_CASE("a replica that starts again becomes the standby, and takes over at the next loss") {
  for (const Case& one : cases()) {
    INFO(one.name);
    Plan plan = one.plan;
    plan.stop.epochs = 10;
    plan.evaluate_every = 3;
    plan.simulated->detection_ms = 0.5;
    // Each time when the standby is in sync, another of the replicas is lost.
    std::size_t in_sync = 0;
    bool due = true;
    const auto job = job_of(plan);
    sim::SimulationOptions options;
    options.on_event = [&](Address, Instant, const Event& event) {
      if (event.as<event::StandbyInSync>()) ++in_sync, due = true;
    };
    sim::Simulation simulation(job, {}, options);
    simulation.start();
    for (std::uint64_t step = 0; !simulation.ended(); ++step) {
      if (const std::string stuck = simulation.stuck(true); !stuck.empty()) FAIL(stuck);
      if (due && step > 100) {
        due = false;
        const Address lost = in_sync % 3 == 2 ? kStandby0 : kShard0;
        simulation.host().kill(lost, "the test has killed it");
        simulation.host().at(simulation.now() + microseconds(300),
                             [&simulation, lost] { simulation.start_again(lost); });
      }
      simulation.step();
    }
    CHECK(in_sync > 3);
    CHECK(simulation.totals().end.reason == msg::RunEnded::Reason::finished);
    CHECK(simulation.totals().end.samples_trained == 600);
    if (one.exact()) CHECK(weights_of(*job, simulation.totals().weights) == run(plan).weights);
  }
}

TEST_CASE("the loss of both replicas ends the run, and names the shard") {
  const auto out =
      run(replicated(plan::Ssp{1}), [](sim::Simulation& simulation, std::uint64_t step) {
        if (step != 200) return;
        simulation.host().kill(kStandby0, "the test has killed it");
        simulation.host().kill(kShard0, "the test has killed it too");
      });
  CHECK(out.totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK_THAT(out.totals.end.text, Catch::Contains("shard 0 ended: the test has killed it too"));
}

}  // namespace leeway::test
