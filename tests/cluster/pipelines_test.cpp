// Pipelines on threads, in a simulation, and over nodes that are lost, fall silent and return.
#include <catch2/catch.hpp>

#include "leeway.hpp"
#include "tests/cluster/wire.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

const RunOptions kQuiet{.quiet = true};

/// Nine layers, including dropout, and two pipelines of `stages` stages.
Plan piped_plan(std::uint32_t stages, const char* schedule = "1f1b", std::uint32_t chunks = 1) {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{7}, plan::Relu{},       plan::Linear{6},
                plan::Tanh{},    plan::Linear{5},    plan::Relu{},
                plan::Linear{4}, plan::Dropout{0.2}, plan::Linear{3}};
  plan.consistency = plan::Bsp{};
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  plan.pipeline.stages = stages;
  plan.pipeline.schedule = schedule;
  plan.pipeline.chunks = chunks;
  plan.workers = 2 * stages;
  plan.batch = 12;
  plan.micro_batches = 4;
  plan.stop.epochs = 4;
  return plan;
}

/// Two pipelines of two stages whose operations take a millisecond, so that faults happen during
/// the run. Workers 0 and 1 are pipeline 0, 2 and 3 pipeline 1.
Plan slow_plan(double epochs = 40) {
  Plan plan = piped_plan(2);
  plan.consistency = plan::Ssp{2};
  plan.batch = 4;
  plan.micro_batches = 2;
  plan.stop.epochs = epochs;
  plan.stragglers = {{0, true, plan::Pauses{1, 1u}}};
  return plan;
}
constexpr WorkerId kWorker0{0}, kWorker1{1}, kWorker2{2}, kWorker3{3};
/// The shards are on the program's node. Each pipeline has its own node.
constexpr const char* kApart = "shards=0,worker0=1,worker1=1,worker2=2,worker3=2";
/// Each pipeline is on both nodes.
constexpr const char* kAcross = "shards=0,worker0=1,worker1=2,worker2=1,worker3=2";
/// Only worker 3 is on node 2.
constexpr const char* kOneApart = "shards=0,workers=1,worker3=2";

bool has_finished(Cluster& cluster, WorkerId worker, int iterations) {
  return cluster.wait_for<event::StepFinished>(address_of(worker), worker, iterations);
}
int finished(Cluster& cluster, WorkerId worker) {
  return cluster.count<event::StepFinished>(address_of(worker), worker);
}

void check_all_trained(const RunTotals& totals, double epochs = 40) {
  CHECK(totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(totals.end.samples_trained == static_cast<std::uint64_t>(epochs * 60));
  CHECK(totals.last.malformed == 0);
}

std::vector<float> run_for_weights(Plan plan, bool simulated = false) {
  if (simulated) plan.simulated = plan::World{};
  const auto result = run(plan, kQuiet);
  INFO(result.error);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 4 * 60);
  CHECK(result.totals.last.refused == 0);
  return weights_of(result);
}

}  // namespace

TEST_CASE(
    "the same seed gives pipelines on threads, over nodes and in a simulation the weights of "
    "workers") {
  struct Form {
    const char* schedule;
    std::uint32_t stages, chunks;
  };
  for (const Form& form :
       {Form{"gpipe", 2, 1}, Form{"1f1b", 3, 1}, Form{"interleaved", 2, 2}, Form{"zb_h1", 4, 1},
        Form{"interleaved_zb", 2, 2}, Form{"zb_v", 3, 2}, Form{"dualpipe_v", 2, 2}}) {
    INFO(form.schedule << ", " << form.stages << " stages");
    const Plan plan = piped_plan(form.stages, form.schedule, form.chunks);
    Plan whole = plan;
    whole.pipeline = {};
    whole.workers = 2;
    const auto workers = run_for_weights(whole);
    REQUIRE_FALSE(workers.empty());
    CHECK(same_bits(run_for_weights(plan), workers));
    CHECK(same_bits(run_for_weights(plan, true), workers));
    for (const char* place : {"", "worker0=2,worker1=1,worker2=0"}) {
      Cluster cluster(plan, {.place = place});
      cluster.start();
      const auto there = cluster.wait_for_end();
      check_all_trained(there, 4);
      CHECK(there.last.refused == 0);
      CHECK(same_bits(weights_of(*job_of(plan), there.weights), workers));
    }
  }
}

TEST_CASE("pipelines that are never emptied train every sample once, within their bound") {
  for (const char* schedule : {"weight_stashing", "2bw"}) {
    INFO(schedule);
    Plan plan = piped_plan(3, schedule);
    plan.consistency = GENERATE(plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Asp{}));
    plan.stop.epochs = 40;
    for (const bool simulated : {false, true}) {
      if (simulated) plan.simulated = plan::World{};
      const auto result = run(plan, kQuiet);
      INFO(result.error);
      REQUIRE(result.ok());
      CHECK(result.samples_trained == 40 * 60);
      CHECK(result.iterations == 40 * 5);
      if (result.staleness_bound) CHECK(result.max_clock_gap <= *result.staleness_bound + 1);
      CHECK(result.totals.last.malformed == 0);
      CHECK(result.totals.last.refused == 0);
    }
  }
}

TEST_CASE("the pipeline of a stage that crashes and restarts returns, and no sample is lost") {
  Plan plan = slow_plan();
  plan.consistency = GENERATE(plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Bsp{}));
  plan.faults = {{address_of(kWorker3), std::int64_t{5}, 0, plan::Crash{0.02}}};
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 40 * 60);
  CHECK(result.totals.last.malformed == 0);
  // The row of the first stage has the reason, that of the last stage the samples.
  CHECK(result.totals.workers[2].end == "worker 3 (stage 1): fault of the plan: crash");
  CHECK(result.totals.workers[2].back);
  CHECK(result.totals.workers[3].samples > 200);
  CHECK(result.totals.workers[0].end.empty());
}

TEST_CASE("every sample is trained once when stages throw, freeze and join later") {
  Plan plan = slow_plan();
  plan.workers = 6;
  plan.faults = {{address_of(kWorker1), std::int64_t{5}, 0, plan::Throws{}},
                 {address_of(kWorker2), std::int64_t{4}, 0, plan::Freeze{0.05}},
                 {address_of(WorkerId(5)), 0.02, 0, plan::Joins{}}};
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 40 * 60);
  CHECK(result.totals.last.malformed == 0);
  CHECK_THAT(result.totals.workers[0].end, Contains("worker 1 throws in iteration 5"));
  CHECK_FALSE(result.totals.workers[0].back);
  CHECK(result.totals.workers[3].samples > 0);
  CHECK(result.totals.workers[5].samples > 0);
}

TEST_CASE("when a node with one stage is lost, its pipeline ends and the other continues") {
  Cluster cluster(slow_plan(), {.place = kOneApart});
  cluster.start();
  REQUIRE(has_finished(cluster, kWorker3, 5));
  cluster.kill_node(2);
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker2) ==
        "worker 3 (stage 1): node b:4242 is gone: its process ended");
  CHECK(cluster.evicted_for(kWorker0).empty());
}

TEST_CASE("a pipeline starts again when its lost stage continues on another node") {
  Cluster cluster(slow_plan(), {.place = kOneApart});
  cluster.start();
  REQUIRE(has_finished(cluster, kWorker3, 5));
  cluster.kill_node(2);
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker2));
  const int before = finished(cluster, kWorker3), before2 = finished(cluster, kWorker2);
  cluster.node(1).launch(address_of(kWorker3), 2);
  REQUIRE(has_finished(cluster, kWorker3, before + 10));
  REQUIRE(has_finished(cluster, kWorker2, before2 + 10));
  CHECK(cluster.node(0).launch_of(address_of(kWorker2)) == 1);  // has never ended
  check_all_trained(cluster.wait_for_end());
}

TEST_CASE("a stage that waits for a stage of a lost node is not ended") {
  Cluster cluster(slow_plan(), {.place = kOneApart});
  cluster.start();
  REQUIRE(has_finished(cluster, kWorker3, 5));
  cluster.kill_node(2);
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker2));
  REQUIRE(has_finished(cluster, kWorker0, finished(cluster, kWorker0) + 10));
  CHECK(cluster.host(1).lives(address_of(kWorker2)));
  check_all_trained(cluster.wait_for_end());
}

TEST_CASE("a pipeline leaves without a partial push, and all of its stages may return") {
  Cluster cluster(slow_plan(), {.place = kApart});
  cluster.start();
  REQUIRE(has_finished(cluster, kWorker3, 5));
  cluster.host(2).send(kScheduler, encode({.body = msg::Leave{kWorker3}}));
  for (const WorkerId worker : {kWorker2, kWorker3})
    REQUIRE(cluster.wait_for<event::Left>(kScheduler, worker));
  const int before = finished(cluster, kWorker3);
  for (const WorkerId worker : {kWorker2, kWorker3}) cluster.node(1).launch(address_of(worker), 2);
  CHECK(has_finished(cluster, kWorker3, before + 5));
  const auto totals = cluster.wait_for_end();
  check_all_trained(totals);
  CHECK(totals.end.partial_pushes == 0);
}

TEST_CASE("only the pipeline of a stage waits for the stage's node to join") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1,worker3=later"});
  cluster.start();
  REQUIRE(has_finished(cluster, kWorker0, 5));
  CHECK(finished(cluster, kWorker2) == 0);
  cluster.node(2).launch(address_of(kWorker3), 1);
  CHECK(has_finished(cluster, kWorker2, 5));
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker2).empty());
}

}  // namespace leeway::test
