// The coordinator: nodes that offer themselves, are silent, or do not hear each other.
#include "tests/actors/cluster/coordinated_program.hpp"

namespace leeway::test {
namespace {
using LinkState = node::LinkState::State;
}

TEST_CASE("an offer waits until a node is lost, and its node takes the lost workers") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  REQUIRE(program.take<node::Held>(3).size() == 1);
  program.pass(seconds(1));
  CHECK(program.take<node::Held>(3).empty());  // once
  program.coordinator.gone(PeerId(2), "its process ended");
  const auto asked = program.take<node::Ask>(3);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].self == 3);
  CHECK(asked[0].nodes == std::vector<std::string>{"program:1", "node1:4242", "", "node3:4242"});
  const std::uint32_t nowhere = kNowhere.value();
  CHECK(asked[0].workers == std::vector<std::uint32_t>{1, nowhere, 1, nowhere});
  program.answer(3);
  REQUIRE(program.take<node::Start>(3).size() == 1);
  program.receive(3, node::Linked{});
  REQUIRE(program.take<node::Begin>(3).size() == 1);
  CHECK(program.begun(3) == Launches{"1/2", "3/2"});
  CHECK_THAT(program.log, Contains("worker 1 continues at node node3:4242"));
  CHECK(program.coordinator.placement().workers[3] == NodeIndex(3));
}

TEST_CASE("an offer is refused at the end of its wait") {
  const Duration wait = GENERATE(Duration{}, seconds(30));
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3, wait);
  if (wait > Duration{}) {
    program.pass(seconds(29));
    CHECK(program.take<node::Refused>(3).empty());
    program.pass(seconds(2));
  }
  const auto refused = program.take<node::Refused>(3);
  REQUIRE(refused.size() == 1);
  CHECK_THAT(refused[0].text, Contains("has all its 4 workers") && Contains("--wait"));
  program.coordinator.gone(PeerId(2), "its process ended");
  CHECK(program.take<node::Ask>(3).empty());
}

TEST_CASE(
    "of two waiting nodes the first takes all lost workers, and the second those of its loss") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  program.offer(4);
  program.coordinator.gone(PeerId(2), "its process ended");
  CHECK(program.take<node::Ask>(3).size() == 1);
  CHECK(program.take<node::Ask>(4).empty());
  SECTION("it is lost before it has linked") {
    program.coordinator.gone(PeerId(3), "its process ended");
    CHECK(program.take<node::Ask>(4).size() == 1);
  }
  SECTION("it does not answer in time") {
    program.pass(seconds(21));
    CHECK(program.take<node::Ask>(4).size() == 1);
    CHECK_THAT(program.log, Contains("node3:4242 cannot join: has not sent an answer within 20 s"));
    CHECK(program.take<node::Refused>(3).size() == 1);
    program.answer(3);  // late
    CHECK(program.take<node::Start>(3).empty());
  }
}

TEST_CASE("a node that loads the data has more time to answer") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.prepare();
  for (const std::uint32_t node : {1, 2}) program.coordinator.called(NodeIndex(node), PeerId(node));
  program.answer(1);
  for (int i = 0; i < 5; ++i) {
    program.receive(2, node::LoadingData{});
    program.pass(seconds(19));
  }
  CHECK_THAT(program.log, Contains("node node2:4242 loads the data\n"
                                   "node node2:4242 still loads the data, after 19 s\n"));
  SECTION("it answers") {
    program.answer(2);
    CHECK(program.coordinator.phase() == Coordinator::Phase::ready);
  }
  SECTION("it reports no more") {
    program.pass(seconds(2));
    CHECK(program.coordinator.phase() == Coordinator::Phase::failed);
    CHECK_THAT(program.coordinator.problems().error().text,
               Contains("node2:4242: has not sent an answer within 20 s"));
  }
}

TEST_CASE("a joining node that loads the data for long keeps no worker from another node") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  program.coordinator.gone(PeerId(2), "its process ended");
  REQUIRE(program.take<node::Ask>(3).size() == 1);
  program.offer(4);
  for (int i = 0; i < 2; ++i) {
    CHECK(program.take<node::Ask>(4).empty());
    program.pass(seconds(11));
    program.receive(3, node::LoadingData{});
  }
  REQUIRE(program.take<node::Ask>(4).size() == 1);
  program.answer(3);
  program.receive(3, node::Linked{});
  CHECK(program.begun(3).empty());
  program.answer(4);
  program.receive(4, node::Linked{});
  CHECK(program.begun(4) == Launches{"1/2", "3/2"});
}

TEST_CASE("a node that joins connects to those that were started before it, whatever its number") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  program.coordinator.gone(PeerId(2), "its process ended");
  program.offer(4);
  for (int i = 0; i < 2; ++i) {
    program.pass(seconds(11));
    program.receive(3, node::LoadingData{});
  }
  using Names = std::vector<std::string>;
  program.answer(4);
  const auto first = program.take<node::Start>(4);
  REQUIRE(first.size() == 1);
  CHECK(first[0].nodes == Names{"", "node1:4242", "", "", ""});
  program.receive(4, node::Linked{});
  program.answer(3);
  const auto second = program.take<node::Start>(3);
  REQUIRE(second.size() == 1);
  CHECK(second[0].nodes == Names{"", "node1:4242", "", "", "node4:4242"});
}

TEST_CASE("offers are refused when the job ends") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  program.coordinator.finish();
  const auto refused = program.take<node::Refused>(3);
  REQUIRE(refused.size() == 1);
  CHECK_THAT(refused[0].text, Contains("has ended"));
}

TEST_CASE("a node that is silent for the coordinator's patience is replaced by one that offers") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.offer(3);
  program.coordinator.silent(PeerId(2));
  program.pass(seconds(9));
  CHECK(program.take<node::Ask>(3).empty());
  program.pass(seconds(2));
  const auto asked = program.take<node::Ask>(3);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].nodes[2].empty());
  CHECK(program.take<node::End>(2).size() == 1);  // in case that it lives
  CHECK(program.ended_connections == std::set{PeerId(2)});
  CHECK(program.unlinked.contains(NodeIndex(2)));
  CHECK(program.lost_nodes.contains(NodeIndex(2)));
  program.answer(3);
  program.receive(3, node::Linked{});
  CHECK(program.begun(3) == Launches{"1/2", "3/2"});
}

TEST_CASE("a silent node stays if it hosts a shard, is heard again, or no node wants its workers") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  SECTION("a shard") {
    program.offer(3);
    program.coordinator.silent(PeerId(1));
    program.pass(seconds(20));
  }
  SECTION("heard again") {
    program.offer(3);
    program.coordinator.silent(PeerId(2));
    program.pass(seconds(9));
    program.coordinator.heard(PeerId(2));
    program.pass(seconds(9));
  }
  SECTION("no offer") {
    program.coordinator.silent(PeerId(2));
    program.pass(seconds(100));
  }
  CHECK(program.take<node::Ask>(3).empty());
  CHECK(program.ended_connections.empty());
}

TEST_CASE("workers without a connection to a shard end, and begin again when it is heard") {
  CoordinatedProgram program(four_workers(), 3, "shards=1+3,workers=3+2");
  program.run();
  program.report(2, 1, LinkState::silent);
  program.report(1, 2, LinkState::silent);
  program.pass(seconds(9));
  CHECK(program.ended(2).empty());
  program.pass(seconds(2));
  CHECK(program.ended(2) == Launches{"1/1", "3/1"});
  CHECK_THAT(program.reason, Contains("shard 0 on node node1:4242 cannot be reached from node "
                                      "node2:4242"));
  CHECK(program.ended(3).empty());
  program.pass(seconds(100));
  CHECK(program.ended(2).empty());  // once
  program.report(2, 1, LinkState::heard);
  CHECK(program.begun(2).empty());  // not by the other node
  program.report(1, 2, LinkState::heard);
  CHECK(program.begun(2) == Launches{"1/2", "3/2"});
}

TEST_CASE("a short outage between two nodes changes nothing") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.report(2, 1, LinkState::silent);
  program.pass(seconds(9));
  program.report(2, 1, LinkState::heard);
  program.pass(seconds(100));
  CHECK(program.ended(2).empty());
  CHECK(program.begun(2).empty());
}

TEST_CASE("stages that lose each other for good end, although the program hears both") {
  CoordinatedProgram program(two_pipelines(), 2, kOneStageApart);
  program.run();
  program.report(1, 2, LinkState::gone);
  program.pass(milliseconds(2100));
  CHECK(program.ended(1) == Launches{"2/1"});
  CHECK(program.ended(2) == Launches{"3/1"});
  // The rest of the pipeline begins again when another node takes the stage.
  program.coordinator.gone(PeerId(2), "its process ended");
  CHECK(program.begun(1) == Launches{"2/2"});
  program.offer(3);
  program.answer(3);
  program.receive(3, node::Linked{});
  CHECK(program.begun(3) == Launches{"3/2"});
}

TEST_CASE("two nodes whose connection is gone are ordered to make another until they have one") {
  CoordinatedProgram program(two_pipelines(), 2, kOneStageApart);
  program.run();
  program.report(2, 1, LinkState::gone);
  program.report(1, 2, LinkState::gone);
  // The program may be about to notice that one of them is lost.
  program.pass(seconds(1));
  CHECK(program.take<node::Relink>(2).empty());
  CHECK(program.ended(2).empty());
  program.pass(milliseconds(1100));
  CHECK(program.ended(2) == Launches{"3/1"});
  const auto orders = program.take<node::Relink>(2);  // to the node with the larger number
  REQUIRE_FALSE(orders.empty());
  CHECK(orders[0].node == 1);
  program.pass(seconds(4));
  CHECK(program.take<node::Relink>(2).empty());
  program.pass(seconds(2));
  CHECK_FALSE(program.take<node::Relink>(2).empty());
  CHECK(program.take<node::Relink>(1).empty());
  program.report(1, 2, LinkState::heard);
  CHECK(program.begun(1).empty());
  program.report(2, 1, LinkState::heard);
  CHECK(program.begun(1) == Launches{"2/2"});
  CHECK(program.begun(2) == Launches{"3/2"});
  program.pass(seconds(100));
  CHECK(program.take<node::Relink>(2).empty());
}

TEST_CASE("an outage waits for a node that the program does not hear itself") {
  CoordinatedProgram program(two_pipelines(), 2, kOneStageApart);
  program.run();
  program.coordinator.silent(PeerId(2));
  program.report(1, 2, LinkState::silent);
  program.pass(seconds(60));
  CHECK(program.ended(1).empty());
  program.coordinator.heard(PeerId(2));
  program.coordinator.tick();
  CHECK(program.ended(1) == Launches{"2/1"});
}

TEST_CASE("shards that cannot exchange the norms of rounds are reported to the scheduler") {
  CoordinatedProgram program(four_workers(), 2, "shards=1+2,workers=0");
  const bool norms = GENERATE(true, false);
  program.run(norms);
  for (const std::uint32_t node : {1, 2}) program.report(node, 3 - node, LinkState::silent);
  program.pass(seconds(11));
  REQUIRE(program.lost_actors.size() == (norms ? 1u : 0u));
  if (norms)
    CHECK_THAT(program.lost_actors.begin()->second, Contains("cannot be reached from node"));
}

TEST_CASE("reports about connections of unknown nodes are ignored") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  for (const std::uint32_t node : {0u, 2u, 9u}) program.report(2, node, LinkState::gone);
  program.coordinator.gone(PeerId(1), "its process ended");
  program.report(2, 1, LinkState::gone);
  program.pass(seconds(100));
  CHECK(program.ended(1).empty());
  CHECK(program.ended(2).empty());
}

TEST_CASE("a worker that a fault starts again is launched where it is placed") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.receive(2, node::Returned{WorkerId(1)});
  CHECK(program.begun(2) == Launches{"1/2"});
  program.receive(2, node::Returned{WorkerId(0)});   // is on node 1
  program.receive(2, node::Returned{WorkerId(99)});  // does not exist
  CHECK(program.begun(1).empty());
  CHECK(program.begun(2).empty());
}

TEST_CASE("the workers of a node that leaves are asked to leave, and then it is free") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.receive(2, node::Leaving{});
  CHECK(program.asked_to_leave == std::set{WorkerId(1), WorkerId(3)});
  program.coordinator.on_event(event::Left{WorkerId(3)});
  CHECK(program.take<node::Left>(2).empty());
  program.coordinator.on_event(event::Left{WorkerId(1)});
  CHECK(program.take<node::Left>(2).size() == 1);
  program.receive(2, node::Done{});
  program.offer(3);
  CHECK(program.take<node::Ask>(3).size() == 1);
}

}  // namespace leeway::test
