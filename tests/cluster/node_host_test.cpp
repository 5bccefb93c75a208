// One job on several nodes that are lost, fall silent and return.
#include "actors/cluster/node_host.hpp"

#include <catch2/catch.hpp>

#include "leeway.hpp"
#include "tests/cluster/wire.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

constexpr Address kShard0{RoleKind::shard, 0};
constexpr WorkerId kWorker0{0}, kWorker1{1}, kWorker2{2}, kWorker3{3};

/// Four workers whose iterations take two milliseconds, so that faults happen during the run.
Plan slow_plan(double epochs = 60) {
  Plan plan = tiny_plan();
  plan.workers = 4;
  plan.consistency = plan::Ssp{2};
  plan.stop.epochs = epochs;
  plan.stragglers = {{0, true, plan::Pauses{2, 1u}}};
  return plan;
}

bool has_begun(Cluster& cluster, WorkerId worker, int iterations = 20) {
  return cluster.wait_for<event::StepStarted>(address_of(worker), worker, iterations);
}

Message leave_of(WorkerId worker) {
  return encode({.body = msg::Leave{worker}});
}

void check_all_trained(const RunTotals& totals, double epochs = 60) {
  CHECK(totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(totals.end.samples_trained == static_cast<std::uint64_t>(epochs * 60));
  CHECK(totals.last.malformed == 0);
}

}  // namespace

TEST_CASE("a bsp run over three nodes gives the weights of one process, bit for bit") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = 4;
  plan.batch = 3;
  plan.stop.epochs = 10;
  const auto here = run(plan, {.quiet = true});
  REQUIRE(here.ok());
  Cluster cluster(plan, {.place = GENERATE("", "shard0=0,worker3=0", "shards=1,workers=2")});
  cluster.start();
  const auto there = cluster.wait_for_end();
  check_all_trained(there, 10);
  CHECK(there.last.refused == 0);
  CHECK(same_bits(weights_of(*job_of(plan), there.weights), weights_of(here)));
}

TEST_CASE("when a node with workers is lost, the other workers train its unfinished samples") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.kill_node(2);
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker1) == "node b:4242 is gone: its process ended");
  CHECK(cluster.evicted_for(kWorker3) == "node b:4242 is gone: its process ended");
  CHECK(cluster.evicted_for(kWorker0).empty());
}

TEST_CASE("workers of a lost node continue on another node when they are launched again") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.kill_node(2);
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker1));
  cluster.node(1).launch(address_of(kWorker1), 2);
  const int before = cluster.count<event::StepFinished>(address_of(kWorker1), kWorker1);
  REQUIRE(cluster.wait_for<event::StepFinished>(address_of(kWorker1), kWorker1, before + 10));
  CHECK(cluster.host(1).lives(address_of(kWorker1)));
  CHECK(cluster.node(0).launch_of(address_of(kWorker1)) == 2);
  check_all_trained(cluster.wait_for_end());
}

TEST_CASE("the run starts before a worker whose node joins later, and the worker takes part") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1,worker3=later"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker0));
  cluster.node(2).launch(address_of(kWorker3), 1);
  CHECK(has_begun(cluster, kWorker3, 10));
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker3).empty());
}

TEST_CASE("workers of a silent node are evicted, and rejoin when it is heard again") {
  Plan plan = slow_plan(100);
  plan.consistency = GENERATE(plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Bsp{}));
  Cluster cluster(plan, {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  for (const std::uint32_t other : {0u, 1u}) {
    cluster.hold(2, other);
    cluster.node(other).silent(NodeIndex(2));
    cluster.node(2).silent(NodeIndex(other));
  }
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker1));
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker3));
  // The other workers continue.
  const int so_far = cluster.count<event::StepFinished>(address_of(kWorker0), kWorker0);
  REQUIRE(cluster.wait_for<event::StepFinished>(address_of(kWorker0), kWorker0, so_far + 10));
  for (const std::uint32_t other : {0u, 1u}) {
    cluster.node(other).heard(NodeIndex(2));
    cluster.node(2).heard(NodeIndex(other));
    cluster.release(2, other);
  }
  REQUIRE(cluster.wait_for<event::Admitted>(kShard0, kWorker1, 2));
  check_all_trained(cluster.wait_for_end(), 100);
  CHECK(cluster.evicted_for(kWorker1) == "no sign of life of node b:4242 for 2 s");
  CHECK(cluster.node(2).launch_of(address_of(kWorker1)) == 1);
}

TEST_CASE("the loss of a shard's node ends the run with its name and the last snapshot") {
  Plan plan = slow_plan(1000);
  plan.evaluate_every = 1;
  Cluster cluster(plan, {.place = "shards=1+2,workers=2"});
  cluster.start();
  REQUIRE(cluster.wait_for_evaluation());
  cluster.kill_node(1);
  const auto totals = cluster.wait_for_end();
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK_THAT(totals.end.text, Contains("shard 0 ended: node a:4242 is gone: its process ended"));
  CHECK(totals.weights.empty());
  REQUIRE_FALSE(totals.evaluations.empty());
  REQUIRE(totals.last_snapshot.size() == job_of(plan)->layout->blocks().size());
  for (const auto& block : totals.last_snapshot) CHECK(block.size() > 0);
  CHECK(totals.last_snapshot_iteration > Iteration(0));
}

TEST_CASE("a run that fails before its first evaluation has no snapshot") {
  Cluster cluster(slow_plan(1000), {.place = "shards=1,workers=2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker0, 5));
  cluster.kill_node(1);
  const auto totals = cluster.wait_for_end();
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(totals.last_snapshot.empty());
}

TEST_CASE("a worker leaves on request without a partial push, and the run continues") {
  Plan plan = slow_plan();
  plan.consistency = GENERATE(plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Bsp{}),
                              plan::Consistency(plan::Backup{1}));
  Cluster cluster(plan, {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  for (const WorkerId worker : {kWorker1, kWorker3}) {
    cluster.host(2).send(kScheduler, leave_of(worker));
    REQUIRE(cluster.wait_for<event::Left>(kScheduler, worker));
    CHECK(cluster.count<event::StepStarted>(address_of(worker), worker) ==
          cluster.count<event::StepFinished>(address_of(worker), worker));
  }
  const int steps = cluster.count<event::StepStarted>(address_of(kWorker1), kWorker1);
  cluster.kill_node(2);  // no worker is left on it
  const auto totals = cluster.wait_for_end();
  check_all_trained(totals);
  CHECK(totals.end.partial_pushes == 0);
  CHECK(cluster.count<event::Evicted>(kScheduler, kWorker1) == 0);
  CHECK(cluster.count<event::StepStarted>(address_of(kWorker1), kWorker1) == steps);
  CHECK(cluster.evicted_for(kWorker1) == "it was asked to leave");
}

TEST_CASE("a worker that has left may return when it is launched again") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.host(2).send(kScheduler, leave_of(kWorker1));
  REQUIRE(cluster.wait_for<event::Left>(kScheduler, kWorker1));
  const int steps = cluster.count<event::StepStarted>(address_of(kWorker1), kWorker1);
  cluster.node(1).launch(address_of(kWorker1), 2);
  CHECK(has_begun(cluster, kWorker1, steps + 10));
  check_all_trained(cluster.wait_for_end());
}

TEST_CASE("when the last worker has left, the run fails with its name") {
  Cluster cluster(slow_plan(1000), {.place = "shards=1,workers=1+2"});
  cluster.start();
  for (const WorkerId worker : {kWorker0, kWorker1, kWorker2, kWorker3}) {
    REQUIRE(has_begun(cluster, worker, 1));
    cluster.host(2).send(kScheduler, leave_of(worker));
    REQUIRE(cluster.wait_for<event::Left>(kScheduler, worker));
  }
  const auto totals = cluster.wait_for_end();
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK_THAT(totals.end.text, Contains("no worker is left; the last to end was worker 3"));
  CHECK_FALSE(totals.weights.empty());
}

TEST_CASE("a plan's faults happen on the nodes of their workers") {
  Plan plan = slow_plan();
  plan.faults = {{address_of(kWorker0), std::int64_t{10}, 0, plan::Throws{}},
                 {address_of(kWorker1), std::int64_t{10}, 0, plan::Crash{0.03}},
                 {address_of(kWorker2), 0.02, 0, plan::Joins{}},
                 {address_of(kWorker3), std::int64_t{10}, 0, plan::Leaves{}}};
  Cluster cluster(plan, {.place = "shards=1,workers=2+1"});
  cluster.start();
  check_all_trained(cluster.wait_for_end());
  CHECK_THAT(cluster.evicted_for(kWorker0), Contains("worker 0 throws in iteration 10"));
  CHECK(cluster.evicted_for(kWorker1) == "fault of the plan: crash");
  CHECK(cluster.count<event::Admitted>(kShard0, kWorker1) >= 2);
  CHECK(cluster.node(0).launch_of(address_of(kWorker1)) == 2);
  CHECK(cluster.count<event::Admitted>(kShard0, kWorker2) == 1);
  CHECK(cluster.count<event::Left>(kScheduler, kWorker3) == 1);
}

TEST_CASE("a message from a node that does not host its sender is refused and counted") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker0, 5));
  auto& host = cluster.node(0);
  const Message join = encode({.body = msg::Diverged{}});
  host.deliver(NodeIndex(2), address_of(kWorker0), kScheduler, join);  // the sender is on node 1
  host.deliver(NodeIndex(1), address_of(kWorker0), kShard0, join);     // the receiver is on node 1
  host.deliver(NodeIndex(1), kScheduler, kMonitor, join);              // the sender is on node 0
  host.deliver(NodeIndex(9), address_of(kWorker0), kScheduler, join);  // no such node
  CHECK(host.refused() == 4);
  check_all_trained(cluster.wait_for_end());  // no worker has diverged
}

TEST_CASE("the end of an earlier launch is ignored") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.kill_node(2);
  cluster.node(1).launch(address_of(kWorker1), 2);
  REQUIRE(cluster.wait_for<event::Admitted>(kShard0, kWorker1, 2));
  const int evicted = cluster.count<event::Evicted>(kScheduler, kWorker1);
  cluster.node(0).ended(address_of(kWorker1), 1, "long ago");
  const int steps = cluster.count<event::StepStarted>(address_of(kWorker1), kWorker1);
  REQUIRE(has_begun(cluster, kWorker1, steps + 10));
  CHECK(cluster.count<event::Evicted>(kScheduler, kWorker1) == evicted);
  check_all_trained(cluster.wait_for_end());
}

TEST_CASE("an order to end an earlier launch of a worker does not end its present one") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.node(2).launch(address_of(kWorker1), 2);
  REQUIRE(cluster.wait_for<event::Admitted>(kShard0, kWorker1, 2));
  const int steps = cluster.count<event::StepStarted>(address_of(kWorker1), kWorker1);
  cluster.node(2).end_launch(address_of(kWorker1), 1, "it comes late");
  REQUIRE(has_begun(cluster, kWorker1, steps + 10));
  CHECK(cluster.host(2).lives(address_of(kWorker1)));
  cluster.node(2).end_launch(address_of(kWorker1), 2, "it is cut off");
  REQUIRE(cluster.wait_for<event::Evicted>(kScheduler, kWorker1, 2));
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker1) == "it is cut off");
}

TEST_CASE("an order for a launch that is not later than the present one is ignored") {
  Cluster cluster(slow_plan(), {.place = "shards=1,workers=1+2"});
  cluster.start();
  REQUIRE(has_begun(cluster, kWorker1));
  cluster.node(1).launch(address_of(kWorker1), 3);
  REQUIRE(cluster.wait_for<event::Admitted>(kShard0, kWorker1, 2));
  cluster.node(2).launch(address_of(kWorker1), 2);
  CHECK(comes_true([&] { return !cluster.host(2).lives(address_of(kWorker1)); }));
  CHECK(cluster.node(2).node_of(address_of(kWorker1)) == NodeIndex(1));
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.host(1).lives(address_of(kWorker1)));
}

}  // namespace leeway::test
