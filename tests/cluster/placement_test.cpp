// The placement of a job's actors on nodes.
#include "actors/cluster/placement.hpp"
#include "plan/groups.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace leeway::test {
namespace {

std::vector<NodeIndex> nodes(std::vector<std::uint32_t> numbers) {
  std::vector<NodeIndex> all;
  for (const auto number : numbers) all.emplace_back(number);
  return all;
}

Plan plan_of(std::uint32_t shards, std::uint32_t workers, std::uint32_t stages = 1) {
  Plan plan;
  plan.shards = shards;
  plan.workers = workers;
  plan.pipeline.stages = stages;
  return plan;
}

Placement placed(std::uint32_t agents, const std::string& place) {
  const auto made = place_actors(agents, plan_of(3, 4), place);
  REQUIRE(made);
  return *made;
}

/// The nodes of the workers of pipelines.
std::vector<NodeIndex> piped(std::uint32_t agents, std::uint32_t pipelines, std::uint32_t stages,
                             const std::string& place = "") {
  const auto made = place_actors(agents, plan_of(2, pipelines * stages, stages), place);
  REQUIRE(made);
  return made->workers;
}

std::string error_of(const std::string& place) {
  const auto made = place_actors(2, plan_of(3, 4), place);
  REQUIRE_FALSE(made);
  return made.error().text;
}

}  // namespace

TEST_CASE("without agents all actors are on the program's node") {
  const auto placement = placed(0, "");
  CHECK(placement.nodes == 1);
  CHECK(placement.shards == nodes({0, 0, 0}));
  CHECK(placement.workers == nodes({0, 0, 0, 0}));
}

TEST_CASE("shards and workers are distributed over the agents in turn") {
  const auto placement = placed(2, "");
  CHECK(placement.nodes == 3);
  CHECK(placement.shards == nodes({1, 2, 1}));
  CHECK(placement.workers == nodes({1, 2, 1, 2}));
}

TEST_CASE("a standby is on another node than its shard, and on another host if there is one") {
  Plan plan = plan_of(3, 1);
  plan.replicas = 2;
  const auto standbys = [&](std::uint32_t agents, const std::string& place,
                            const std::vector<std::string>& hosts = {}) {
    const auto made = place_actors(agents, plan, place, hosts);
    REQUIRE(made);
    return made->standbys;
  };
  CHECK(standbys(0, "") == nodes({0, 0, 0}));
  CHECK(standbys(1, "") == nodes({1, 1, 1}));
  CHECK(standbys(2, "") == nodes({2, 1, 2}));
  CHECK(standbys(3, "") == nodes({2, 3, 1}));
  CHECK(standbys(3, "shards=0") == nodes({1, 2, 3}));
  CHECK(standbys(3, "standbys=3,standby1=1") == nodes({3, 1, 3}));
  CHECK(standbys(4, "", {"", "a", "a", "b", "b"}) == nodes({4, 3, 1}));
  plan.replicas = 1;
  CHECK(standbys(2, "").empty());
}

TEST_CASE("scheduler and monitor are on the program's node; a host is on no node") {
  const auto placement = placed(2, "");
  CHECK(placement.node_of(kScheduler) == kProgramNode);
  CHECK(placement.node_of(kMonitor) == kProgramNode);
  CHECK(placement.node_of(kHost) == kNowhere);
  CHECK(placement.node_of(address_of(ShardId(1))) == NodeIndex(2));
  CHECK(placement.node_of(address_of(WorkerId(3))) == NodeIndex(2));
  CHECK(placement.node_of(address_of(ShardId(3))) == kNowhere);
  CHECK(placement.node_of(address_of(WorkerId(4))) == kNowhere);
}

TEST_CASE("items place single actors or all actors of a kind; single actors take precedence") {
  CHECK(placed(2, "shards=1").shards == nodes({1, 1, 1}));
  CHECK(placed(2, "shards=2+1").shards == nodes({2, 1, 2}));
  CHECK(placed(2, "shards=0,workers=1+2").shards == nodes({0, 0, 0}));
  CHECK(placed(2, "worker2=0").workers == nodes({1, 2, 0, 2}));
  CHECK(placed(2, "worker2=1,workers=2").workers == nodes({2, 2, 1, 2}));
  CHECK(placed(2, "shard0=2,worker3=later").shards == nodes({2, 2, 1}));
  CHECK(placed(2, "worker3=later").workers.back() == kNowhere);
}

TEST_CASE("the workers of a node are a host group, and those of a group have one node", "[group]") {
  Plan plan = plan_of(2, 8, 1);
  plan.consistency = plan::Bsp{};
  plan.aggregate = plan::HostGroups{};
  const auto group_of = [&](std::uint32_t agents, const std::string& place) {
    const auto placed = place_actors(agents, plan, place);
    REQUIRE(placed);
    const auto grouped = with_host_groups(plan, *placed);
    return grouped ? concat(workers_per_group(*grouped)) : grouped.error().text;
  };
  CHECK(group_of(0, "") == "8");
  CHECK(group_of(2, "") == "4");
  CHECK(group_of(4, "") == "2");
  CHECK(group_of(8, "") == "1");
  CHECK_THAT(group_of(3, ""), Contains("8 workers cannot be divided into groups of 3"));
  CHECK_THAT(group_of(2, "worker5=1"),
             Contains("worker 5 is on another node") || Contains("groups of"));
  plan.aggregate = plan::GroupsOf{2};
  CHECK(group_of(3, "") == "2");
  CHECK_THAT(group_of(3, "worker1=3"), Contains("workers 0 to 1 are a group"));
  const auto placed = place_actors(3, plan, "");
  REQUIRE(placed);
  for (std::uint32_t lead = 0; lead < 8; lead += 2)
    CHECK(placed->workers[lead] == placed->workers[lead + 1]);
}

TEST_CASE("with enough nodes, each stage of a pipeline has its own node") {
  CHECK(piped(3, 1, 3) == nodes({1, 2, 3}));
  CHECK(piped(5, 1, 3) == nodes({1, 2, 3}));
  CHECK(piped(4, 2, 2) == nodes({1, 2, 3, 4}));
}

TEST_CASE("with fewer nodes, neighbours share a node, and whole pipelines if that is even") {
  CHECK(piped(0, 2, 2) == nodes({0, 0, 0, 0}));
  CHECK(piped(2, 2, 2) == nodes({1, 1, 2, 2}));
  CHECK(piped(2, 1, 4) == nodes({1, 1, 2, 2}));
  CHECK(piped(4, 2, 4) == nodes({1, 1, 2, 2, 3, 3, 4, 4}));
  CHECK(piped(2, 4, 2) == nodes({1, 1, 1, 1, 2, 2, 2, 2}));
  CHECK(piped(3, 2, 2) == nodes({1, 1, 2, 3}));
  CHECK(piped(2, 3, 3) == nodes({1, 1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST_CASE("pipelines are on as few nodes as possible, and loads differ by at most one worker") {
  for (std::uint32_t agents = 1; agents <= 7; ++agents)
    for (std::uint32_t pipelines = 1; pipelines <= 5; ++pipelines)
      for (std::uint32_t stages = 2; stages <= 6; ++stages) {
        INFO(agents << " nodes, " << pipelines << " pipelines of " << stages);
        const auto workers = piped(agents, pipelines, stages);
        std::map<NodeIndex, std::uint32_t> count;
        for (const NodeIndex node : workers) ++count[node];
        const std::uint32_t least = pipelines * stages / agents;
        for (const auto& [node, has] : count) CHECK((has == least || has == least + 1));
        std::uint32_t between_nodes = 0;  // neighbours in the row of all workers
        for (std::size_t i = 1; i < workers.size(); ++i)
          between_nodes += workers[i] != workers[i - 1];
        CHECK(between_nodes + 1 == std::min(agents, pipelines * stages));
      }
}

TEST_CASE("items place stages like workers, in rows over several nodes") {
  CHECK(piped(3, 2, 2, "workers=2+3") == nodes({2, 2, 3, 3}));
  CHECK(piped(3, 2, 2, "workers=3+1+2") == nodes({3, 3, 1, 2}));
  CHECK(piped(3, 2, 2, "worker2=1,workers=2+3") == nodes({2, 2, 1, 3}));
  CHECK(piped(2, 2, 2, "worker3=later").back() == kNowhere);
}

TEST_CASE("an invalid item is refused with a remedy") {
  using Catch::Contains;
  CHECK_THAT(error_of("standby0=1"), Contains("the job has none; give --replicas 2 too"));
  CHECK_THAT(error_of("scheduler=1"),
             Contains("\"scheduler=1\" begins with neither shard, standby nor"));
  CHECK_THAT(error_of("worker=1"), Contains("is missing the number after \"worker\""));
  CHECK_THAT(error_of("worker1"), Contains("is missing the '=' after \"worker1\""));
  CHECK_THAT(error_of("worker1="), Contains("is missing the node after \"worker1=\""));
  CHECK_THAT(error_of("worker1=1x"), Contains("has unexpected text after \"worker1=1\""));
  CHECK_THAT(error_of("shards=1,,workers=2"), Contains("\"\" begins with neither"));
  CHECK_THAT(error_of("worker4=1"), Contains("there are 4; give 0 to 3"));
  CHECK_THAT(error_of("shard0=3"), Contains("names node 3; give 0 for the program, or 1 to 2"));
  CHECK_THAT(error_of("shard0=1+2"), Contains("gives one actor several nodes"));
  CHECK_THAT(error_of("shard0=later"), Contains("only single workers can"));
  CHECK_THAT(error_of("workers=later"), Contains("only single workers can"));
  CHECK_THAT(error_of("worker1=1,worker1=2"), Contains("worker1 is given twice"));
  CHECK_THAT(error_of("worker0=later,worker1=later,worker2=later,worker3=later"),
             Contains("place at least one on a node"));
}

TEST_CASE("an item for a missing node is refused with --nodes as the remedy") {
  const auto made = place_actors(0, plan_of(1, 1), "shard0=1");
  REQUIRE_FALSE(made);
  CHECK_THAT(made.error().text, Catch::Contains("name more nodes with --nodes"));
}

}  // namespace leeway::test
