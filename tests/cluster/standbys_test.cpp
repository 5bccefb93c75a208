// One job with standby shards on several nodes, whose replicas are lost.
#include <catch2/catch.hpp>

#include "leeway.hpp"
#include "tests/cluster/wire.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

constexpr Address kShard0 = shard(0), kStandby0 = standby(0);
constexpr WorkerId kWorker0{0};

/// Two workers whose iterations take two milliseconds, so that faults happen during the run.
Plan replicated(plan::Consistency consistency, double epochs = 40) {
  Plan plan = tiny_plan();
  plan.replicas = 2;
  plan.consistency = std::move(consistency);
  plan.stop.epochs = epochs;
  plan.stragglers = {{0, true, plan::Pauses{2, 1u}}};
  return plan;
}

/// The shard is on node 1 and its standby on node 2; the workers are with the program.
Cluster::Options apart(std::uint32_t agents = 2) {
  return {agents, "shards=1,standbys=2,workers=0"};
}

bool has_begun(Cluster& cluster, int iterations) {
  return cluster.wait_for<event::StepStarted>(address_of(kWorker0), kWorker0, iterations);
}

void check_all_trained(const RunTotals& totals, double epochs = 40) {
  INFO(totals.end.text);
  REQUIRE(totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(totals.end.samples_trained == static_cast<std::uint64_t>(epochs * 60));
  CHECK(totals.end.partial_pushes == 0);
  CHECK(totals.last.malformed == 0);
}

std::vector<float> weights_without_losses(Plan plan) {
  plan.replicas = 1;
  plan.faults.clear();
  const auto result = run(plan, {.quiet = true});
  REQUIRE(result.ok());
  return weights_of(result);
}

}  // namespace

TEST_CASE("standby shards change no bit of a bsp run over three nodes") {
  const Plan plan = replicated(plan::Bsp{}, 5);
  Cluster cluster(plan, apart());
  cluster.start();
  const auto totals = cluster.wait_for_end();
  check_all_trained(totals, 5);
  CHECK(same_bits(weights_of(*job_of(plan), totals.weights), weights_without_losses(plan)));
}

TEST_CASE("a standby on another node takes over when the primary's node is lost") {
  const bool bsp = GENERATE(true, false);
  const Plan plan =
      replicated(bsp ? plan::Consistency(plan::Bsp{}) : plan::Consistency(plan::Ssp{2}));
  Cluster cluster(plan, apart());
  cluster.start();
  REQUIRE(has_begun(cluster, 50));
  cluster.kill_node(1);
  const auto totals = cluster.wait_for_end();
  check_all_trained(totals);
  CHECK(cluster.node(0).node_of(kShard0) == NodeIndex(2));
  CHECK(cluster.node(0).node_of(kStandby0) == kNowhere);
  CHECK(cluster.evicted_for(kWorker0).empty());
  if (bsp)
    CHECK(same_bits(weights_of(*job_of(plan), totals.weights), weights_without_losses(plan)));
}

TEST_CASE("the loss of the standby's node changes nothing for the workers") {
  const Plan plan = replicated(plan::Ssp{2});
  Cluster cluster(plan, apart());
  cluster.start();
  REQUIRE(has_begun(cluster, 50));
  cluster.kill_node(2);
  check_all_trained(cluster.wait_for_end());
  CHECK(cluster.evicted_for(kWorker0).empty());
}

TEST_CASE("a standby that is launched later gets the state, and takes over in its turn") {
  Plan plan = replicated(plan::Bsp{}, 120);
  plan.shards = 1;
  Cluster cluster(plan, apart(3));
  cluster.start();
  REQUIRE(has_begun(cluster, 50));
  cluster.kill_node(1);
  REQUIRE(cluster.wait_for_change(msg::ReplicasChanged::Change::took_over));
  cluster.node(3).launch(kStandby0, 2);
  REQUIRE(cluster.wait_for_change(msg::ReplicasChanged::Change::in_sync));
  CHECK(cluster.node(0).node_of(kStandby0) == NodeIndex(3));
  cluster.kill_node(2);
  REQUIRE(cluster.wait_for_change(msg::ReplicasChanged::Change::took_over, 2));
  CHECK(cluster.node(0).node_of(kShard0) == NodeIndex(3));
  CHECK(cluster.node(0).launch_of(kShard0) == 3);
  const auto totals = cluster.wait_for_end();
  check_all_trained(totals, 120);
  CHECK(same_bits(weights_of(*job_of(plan), totals.weights), weights_without_losses(plan)));
}

TEST_CASE("a primary on a silent node is replaced, and ends when the node is heard again") {
  const Plan plan = replicated(plan::Ssp{2}, 60);
  Cluster cluster(plan, apart());
  cluster.start();
  REQUIRE(has_begun(cluster, 50));
  cluster.hold(0, 1);
  cluster.hold(1, 2);
  for (const std::uint32_t node : {0u, 2u}) cluster.node(node).silent(NodeIndex(1));
  REQUIRE(cluster.wait_for_change(msg::ReplicasChanged::Change::took_over));
  for (const std::uint32_t node : {0u, 2u}) cluster.node(node).heard(NodeIndex(1));
  cluster.release(0, 1);
  cluster.release(1, 2);
  check_all_trained(cluster.wait_for_end(), 60);
  CHECK(cluster.node(1).node_of(kShard0) == NodeIndex(2));
  CHECK(!cluster.host(1).lives(kShard0));
}

TEST_CASE("replicas in one process, which faults of the plan end and start again") {
  Plan plan = replicated(plan::Bsp{}, 60);
  plan.faults = {{kShard0, 0.05, 0, plan::Crash{0.05}}, {kShard0, 0.3, 0, plan::Crash{}}};
  const auto result = run(plan, {.quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 60 * 60);
  CHECK(same_bits(weights_of(result), weights_without_losses(plan)));
}

}  // namespace leeway::test
