// Which node each actor of a job is on.
#include "cluster/placement.hpp"

#include <catch2/catch.hpp>

namespace leeway::test {
namespace {

std::vector<NodeIndex> nodes(std::vector<std::uint32_t> numbers) {
  std::vector<NodeIndex> all;
  for (const auto number : numbers) all.emplace_back(number);
  return all;
}

Placement placed(std::uint32_t agents, const std::string& place) {
  const auto made = place_actors(agents, 3, 4, place);
  REQUIRE(made);
  return *made;
}

std::string error_of(const std::string& place) {
  const auto made = place_actors(2, 3, 4, place);
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

TEST_CASE("shards and workers are spread over the agents in turn") {
  const auto placement = placed(2, "");
  CHECK(placement.nodes == 3);
  CHECK(placement.shards == nodes({1, 2, 1}));
  CHECK(placement.workers == nodes({1, 2, 1, 2}));
}

TEST_CASE("scheduler and monitor are on the program's node, a host is nowhere") {
  const auto placement = placed(2, "");
  CHECK(placement.node_of(kScheduler) == kProgramNode);
  CHECK(placement.node_of(kMonitor) == kProgramNode);
  CHECK(placement.node_of(kHost) == kNowhere);
  CHECK(placement.node_of(address_of(ShardId(1))) == NodeIndex(2));
  CHECK(placement.node_of(address_of(WorkerId(3))) == NodeIndex(2));
  CHECK(placement.node_of(address_of(ShardId(3))) == kNowhere);
  CHECK(placement.node_of(address_of(WorkerId(4))) == kNowhere);
}

TEST_CASE("items place single actors and all of a kind, the single ones before all") {
  CHECK(placed(2, "shards=1").shards == nodes({1, 1, 1}));
  CHECK(placed(2, "shards=2+1").shards == nodes({2, 1, 2}));
  CHECK(placed(2, "shards=0,workers=1+2").shards == nodes({0, 0, 0}));
  CHECK(placed(2, "worker2=0").workers == nodes({1, 2, 0, 2}));
  CHECK(placed(2, "worker2=1,workers=2").workers == nodes({2, 2, 1, 2}));
  CHECK(placed(2, "shard0=2,worker3=later").shards == nodes({2, 2, 1}));
  CHECK(placed(2, "worker3=later").workers.back() == kNowhere);
}

TEST_CASE("an item that places nothing is refused with what would be right") {
  using Catch::Contains;
  CHECK_THAT(error_of("scheduler=1"), Contains("\"scheduler=1\" begins with neither shard nor"));
  CHECK_THAT(error_of("worker=1"), Contains("has no number after \"worker\""));
  CHECK_THAT(error_of("worker1"), Contains("has no '=' after \"worker1\""));
  CHECK_THAT(error_of("worker1="), Contains("has no node after \"worker1=\""));
  CHECK_THAT(error_of("worker1=1x"), Contains("goes on after \"worker1=1\""));
  CHECK_THAT(error_of("shards=1,,workers=2"), Contains("\"\" begins with neither"));
  CHECK_THAT(error_of("worker4=1"), Contains("there are 4; give 0 to 3"));
  CHECK_THAT(error_of("shard0=3"), Contains("names node 3; give 0 for the program, or 1 to 2"));
  CHECK_THAT(error_of("shard0=1+2"), Contains("gives one actor several nodes"));
  CHECK_THAT(error_of("shard0=later"), Contains("only single workers can"));
  CHECK_THAT(error_of("workers=later"), Contains("only single workers can"));
  CHECK_THAT(error_of("worker1=1,worker1=2"), Contains("worker1 is given twice"));
  CHECK_THAT(error_of("worker0=later,worker1=later,worker2=later,worker3=later"),
             Contains("leave one that is there"));
}

TEST_CASE("without agents a node is asked for") {
  const auto made = place_actors(0, 1, 1, "shard0=1");
  REQUIRE_FALSE(made);
  CHECK_THAT(made.error().text, Catch::Contains("name more nodes with --nodes"));
}

}  // namespace leeway::test
