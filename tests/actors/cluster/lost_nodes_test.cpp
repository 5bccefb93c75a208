// The coordinator: nodes that are missing at the start, and lost nodes that are called again.
#include "tests/actors/cluster/coordinated_program.hpp"

namespace leeway::test {

TEST_CASE("a lost node is called again, and takes missing workers when it answers") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.called.clear();
  program.pass(seconds(1));
  CHECK(program.called.empty());
  program.coordinator.gone(PeerId(2), "its process ended");
  CHECK(program.called.empty());
  program.pass(milliseconds(50));
  REQUIRE(program.called == std::vector{NodeIndex(2)});
  // The time between calls doubles.
  for (const std::int64_t wait : {100, 200, 400, 800}) {
    program.called.clear();
    program.coordinator.called(NodeIndex(2), Error{"no process listens there"});
    program.pass(milliseconds(wait / 4));
    CHECK(program.called.empty());
    program.pass(milliseconds(wait));
    REQUIRE(program.called == std::vector{NodeIndex(2)});
  }
  program.called.clear();
  program.coordinator.called(NodeIndex(2), PeerId(5));
  REQUIRE(program.take<node::Ask>(5).size() == 1);
  program.answer(5);
  program.receive(5, node::Linked{});
  CHECK(program.begun(5) == Launches{"1/2", "3/2"});
  CHECK(program.coordinator.placement().workers[1] == NodeIndex(3));
  program.pass(seconds(60));
  CHECK(program.called.empty());
  // Its second loss is noticed like the first.
  program.coordinator.gone(PeerId(5), "its process ended");
  program.pass(seconds(1));
  CHECK(program.called == std::vector{NodeIndex(3)});
}

TEST_CASE(
    "a node whose workers another has taken is not called, one that has left is called rarely") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.called.clear();
  const bool leaves = GENERATE(true, false);
  if (leaves) {
    program.receive(2, node::Leaving{});
    for (const std::uint32_t worker : {1, 3})
      program.coordinator.on_event(event::Left{WorkerId(worker)});
    program.receive(2, node::Done{});
    program.coordinator.gone(PeerId(2), "its process ended");
    program.pass(seconds(9));
    CHECK(program.called.empty());
    program.pass(seconds(2));
    CHECK(program.called == std::vector{NodeIndex(2)});
    return;
  }
  program.coordinator.gone(PeerId(2), "its process ended");
  program.offer(3);
  program.answer(3);
  program.receive(3, node::Linked{});
  program.pass(seconds(60));
  CHECK(program.called.empty());
}

TEST_CASE("a node that runs again takes its own workers, and others only after the patience") {
  CoordinatedProgram program(four_workers(), 3, "shards=0,worker0=1,worker1=2,worker2=3,worker3=1");
  program.run();
  program.coordinator.gone(PeerId(2), "its process ended");
  program.coordinator.gone(PeerId(3), "its process ended");
  program.pass(milliseconds(250));
  program.coordinator.called(NodeIndex(2), PeerId(5));
  program.answer(5);
  program.receive(5, node::Linked{});
  CHECK(program.begun(5) == Launches{"1/2"});
  program.coordinator.gone(PeerId(5), "its process ended");
  program.pass(seconds(11));
  program.coordinator.called(NodeIndex(4), PeerId(6));
  program.answer(6);
  program.receive(6, node::Linked{});
  CHECK(program.begun(6) == Launches{"1/3", "2/2"});
}

TEST_CASE("a node that joins from the address of a running one waits until that one is lost") {
  CoordinatedProgram program(four_workers(), 3, kShardsOnOne);
  program.run();
  program.coordinator.gone(PeerId(3), "its process ended");  // its worker is missing
  program.receive(7, node::Offer{program.name_of(2), seconds(30)}, 0);
  CHECK(program.take<node::Ask>(7).empty());  // it would call itself
  CHECK(program.take<node::Held>(7).size() == 1);
  program.coordinator.gone(PeerId(2), "another process listens there now");
  program.pass(milliseconds(50));
  const auto asks = program.take<node::Ask>(7);
  REQUIRE(asks.size() == 1);
  CHECK(asks[0].nodes[2].empty());
}

TEST_CASE("a node that is called again and cannot take part loses its connection, not its number") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.lose_and_call(2);
  program.coordinator.called(NodeIndex(2), PeerId(5));
  const bool late = GENERATE(false, true);
  if (late)
    program.pass(seconds(21));
  else
    program.answer(5, "it hosts another job");
  CHECK(program.take<node::Refused>(5).size() == 1);
  CHECK(program.ended_connections.contains(PeerId(5)));
  program.log.clear();
  // A late answer of the old connection counts for nothing.
  program.answer(5);
  CHECK(program.take<node::Start>(5).empty());
  program.pass(seconds(1));
  program.coordinator.called(NodeIndex(3), PeerId(6));
  CHECK(program.take<node::Ask>(6).at(0).self == 3);
  if (!late) {
    program.answer(6, "it hosts another job");
    CHECK(program.log.empty());  // once for each reason
    return;
  }
  program.answer(6);
  program.receive(6, node::Linked{});
  CHECK(program.begun(6) == Launches{"1/2", "3/2"});
}

TEST_CASE("a lost node that has offered itself and waits keeps its connection") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.called.clear();
  program.lose_and_call(2);
  REQUIRE(program.called.size() == 1);
  program.offer(3);
  program.answer(3);
  program.offer(4);
  REQUIRE(program.take<node::Held>(4).size() == 1);
  program.coordinator.called(NodeIndex(2), PeerId(4));
  CHECK_FALSE(program.ended_connections.contains(PeerId(4)));
  program.coordinator.gone(PeerId(3), "its process ended");
  CHECK(program.take<node::Ask>(4).size() == 1);
}

TEST_CASE(
    "a job starts with the nodes that can take part, and the others take their workers later") {
  CoordinatedProgram program(four_workers(), 3, "shards=3,workers=1+2+3+1", 2);
  program.prepare();
  program.coordinator.called(NodeIndex(1), PeerId(0));
  program.coordinator.called(NodeIndex(2), PeerId(2));
  const bool reachable = GENERATE(false, true);
  if (reachable) {
    program.coordinator.called(NodeIndex(3), PeerId(3));
    for (const std::uint32_t peer : {0, 2}) program.answer(peer);
    program.answer(3, "it hosts another job");
    // The others give up the first request, with the placement that was planned.
    for (const std::uint32_t peer : {0, 2}) {
      CHECK(program.take<node::End>(peer).size() == 1);
      CHECK(program.take<node::Ask>(peer).size() == 2);
      program.receive(peer, node::Done{});
    }
  } else {
    program.coordinator.called(NodeIndex(3), Error{"node3:4242: no process listens there"});
    const auto asked = program.take<node::Ask>(0);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].nodes.back().empty());
    CHECK(asked[0].shards == std::vector<std::uint32_t>{1, 2});
    CHECK(asked[0].workers == std::vector<std::uint32_t>{1, 2, kNowhere.value(), 1});
  }
  CHECK_THAT(program.log, Contains("starts without node node3:4242"));
  for (const std::uint32_t peer : {0, 2}) program.answer(peer);
  REQUIRE(program.coordinator.phase() == Coordinator::Phase::ready);
  CHECK(program.coordinator.placement().shards == std::vector{NodeIndex(1), NodeIndex(2)});
  program.coordinator.start(false);
  for (const std::uint32_t peer : {0, 2}) program.receive(peer, node::Linked{});
  REQUIRE(program.coordinator.phase() == Coordinator::Phase::running);
  program.called.clear();
  program.pass(seconds(1));
  REQUIRE(program.called == std::vector{NodeIndex(3)});
  program.coordinator.called(NodeIndex(3), PeerId(3));
  program.answer(3);
  program.receive(3, node::Linked{});
  CHECK(program.begun(3) == Launches{"2/1"});
}

TEST_CASE("a job does not start with fewer nodes than required, or without a complete pipeline") {
  const bool pipelines = GENERATE(false, true);
  CoordinatedProgram program(pipelines ? two_pipelines() : four_workers(), 2,
                             pipelines ? "shards=0,workers=1,worker1=2,worker3=2" : kShardsOnOne,
                             pipelines ? 1 : 2);
  program.prepare();
  program.coordinator.called(NodeIndex(1), PeerId(1));
  program.coordinator.called(NodeIndex(2), Error{"node2:4242: no process listens there"});
  CHECK(program.coordinator.phase() == Coordinator::Phase::failed);
  CHECK_THAT(program.coordinator.problems().error().text,
             Contains("node2:4242: no process listens there"));
}

TEST_CASE("a job starts without a node that ends, or gives up, before the start") {
  CoordinatedProgram program(four_workers(), 3, "shards=1,workers=1+2+3+1", 2);
  program.prepare();
  for (const std::uint32_t node : {1, 2, 3})
    program.coordinator.called(NodeIndex(node), PeerId(node));
  const bool ends = GENERATE(true, false);
  program.answer(1);
  if (ends) {
    program.coordinator.gone(PeerId(3), "its process ended");
  } else {
    program.answer(3);
    program.receive(3, node::Refused{"this node is shutting down"});
    program.receive(3, node::Done{});
  }
  program.answer(2);
  for (const std::uint32_t node : {1, 2}) {
    CHECK(program.take<node::End>(node).size() == 1);
    CHECK(program.take<node::Ask>(node).size() == 2);
    program.receive(node, node::Done{});
    program.answer(node);
  }
  CHECK(program.coordinator.phase() == Coordinator::Phase::ready);
  CHECK(program.take<node::Ask>(1).empty());
}

TEST_CASE("a job does not start when a node gives up its part before") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.prepare();
  for (const std::uint32_t node : {1, 2}) program.coordinator.called(NodeIndex(node), PeerId(node));
  program.answer(1);
  program.receive(1, node::Done{});
  program.answer(2);
  CHECK(program.coordinator.phase() == Coordinator::Phase::failed);
  CHECK_THAT(program.coordinator.problems().error().text, Contains("node1:4242: has given up"));
}

TEST_CASE("the silence of a node's earlier connection does not count for its next one") {
  CoordinatedProgram program(four_workers(), 2, kShardsOnOne);
  program.run();
  program.lose_and_call(2);
  program.coordinator.called(NodeIndex(2), PeerId(5));
  program.coordinator.silent(PeerId(5));
  program.pass(seconds(21));
  program.pass(seconds(1));
  program.coordinator.called(NodeIndex(3), PeerId(6));
  program.answer(6);
  program.receive(6, node::Linked{});
  CHECK(program.begun(6) == Launches{"1/2", "3/2"});
  program.pass(seconds(60));
  program.offer(7);
  CHECK(program.take<node::Ask>(7).empty());
  CHECK_FALSE(program.ended_connections.contains(PeerId(6)));
}

}  // namespace leeway::test
