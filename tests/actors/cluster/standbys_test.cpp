// The coordinator: where standbys are, and nodes with replicas that are lost or leave.
#include "tests/actors/cluster/coordinated_program.hpp"

namespace leeway::test {
namespace {

Plan two_replicas() {
  Plan plan = four_workers();
  plan.shards = 1;
  plan.replicas = 2;
  return plan;
}

/// The shard is on node 1, its standby on node 2; the workers are with the program.
constexpr const char* kApart = "shards=1,standbys=2,workers=0";
constexpr ShardId kShard{0};

/// The scheduler has ordered the standby of this launch to take over, and it has.
void promote(CoordinatedProgram& program, std::uint32_t launch) {
  program.coordinator.on_event(event::StandbyTookOver{kShard, launch});
}
void lose_standby(CoordinatedProgram& program, std::uint32_t launch) {
  program.coordinator.on_event(event::StandbyLost{kShard, launch});
}
void seed(CoordinatedProgram& program, std::uint32_t launch) {
  program.coordinator.on_event(event::StandbyInSync{kShard, launch});
}
/// Node `number` joins as peer `peer`.
void join(CoordinatedProgram& program, std::uint32_t peer) {
  program.offer(peer);
  program.answer(peer);
  program.receive(peer, node::Linked{});
}
/// The coordinator has called the lost node `number`, and only that; it joins as peer `peer`.
void come_back(CoordinatedProgram& program, std::uint32_t number, std::uint32_t peer) {
  REQUIRE(program.called == std::vector{NodeIndex(number)});
  program.coordinator.called(NodeIndex(number), PeerId(peer));
  program.answer(peer);
  program.receive(peer, node::Linked{});
}

}  // namespace

TEST_CASE("a shard whose standby has taken over gets a new one on another node") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.coordinator.gone(PeerId(1), "its process ended");
  promote(program, 1);
  CHECK(program.begun(3) == Launches{"standby0/2"});
  CHECK(program.coordinator.placement().shards[0] == NodeIndex(2));
  CHECK(program.coordinator.placement().standbys[0] == NodeIndex(3));
  CHECK_THAT(program.log, Contains("a standby of shard 0 begins at node node3:4242"));
}

TEST_CASE("a standby that the scheduler gives up ends, and is replaced on another node") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  lose_standby(program, 1);
  CHECK(program.ended(2) == Launches{"standby0/1"});
  CHECK(program.begun(3) == Launches{"standby0/2"});
  // Later reports about the first launch change nothing.
  lose_standby(program, 1);
  program.coordinator.ended(standby(0), 1);
  CHECK(program.ended(3).empty());
}

TEST_CASE("a standby that ends again and again is started ever more rarely") {
  CoordinatedProgram program(two_replicas(), 2, kApart);
  program.run();
  std::uint32_t launch = 1;
  std::vector<double> waits;
  for (int loss = 0; loss < 6; ++loss) {
    if (loss % 2 == 0)
      lose_standby(program, launch);
    else
      program.coordinator.ended(standby(0), launch);  // before it had the state
    const std::int64_t lost_at = program.now;
    while (program.begun(2).empty()) program.pass(milliseconds(50));
    ++launch;
    waits.push_back(static_cast<double>(program.now - lost_at) * 1e-9);
  }
  CHECK(waits[0] < 0.1);
  CHECK(waits[1] == Approx(1).margin(0.1));
  CHECK(waits[3] == Approx(4).margin(0.1));
  CHECK(waits[5] == Approx(10).margin(0.1));
  seed(program, launch);
  program.pass(seconds(60));
  lose_standby(program, launch);
  program.pass(milliseconds(50));
  CHECK(program.begun(2).size() == 1);
}

TEST_CASE("a node that joins gets the standby that no other node can have") {
  CoordinatedProgram program(two_replicas(), 2, kApart);
  program.run();
  program.offer(4);
  REQUIRE(program.take<node::Held>(4).size() == 1);
  program.coordinator.gone(PeerId(1), "its process ended");
  promote(program, 1);
  REQUIRE(program.take<node::Ask>(4).size() == 1);
  program.answer(4);
  program.receive(4, node::Linked{});
  CHECK(program.begun(4) == Launches{"standby0/2"});
}

TEST_CASE("a lost node is called again for a standby that no other node can have") {
  CoordinatedProgram program(two_replicas(), 2, kApart);
  program.run();
  program.called.clear();
  program.coordinator.gone(PeerId(1), "its process ended");
  promote(program, 1);
  program.pass(milliseconds(250));
  come_back(program, 1, 5);
  CHECK(program.begun(5) == Launches{"standby0/2"});
}

TEST_CASE("a lost node comes back, although no shard lacks a standby, and has the next one") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.called.clear();
  program.coordinator.gone(PeerId(1), "its process ended");
  promote(program, 1);
  REQUIRE(program.begun(3) == Launches{"standby0/2"});
  seed(program, 2);
  program.pass(seconds(6));
  come_back(program, 1, 5);
  CHECK(program.begun(5).empty());
  lose_standby(program, 2);
  CHECK(program.begun(5) == Launches{"standby0/3"});
}

TEST_CASE("replicas on one node are separated when another node joins") {
  CoordinatedProgram program(two_replicas(), 1, "");
  program.run();
  program.offer(4);
  REQUIRE(program.take<node::Ask>(4).size() == 1);
  // One node is enough, at any time of the move.
  program.offer(5);
  program.answer(4);
  program.offer(6);
  program.receive(4, node::Linked{});
  program.pass(milliseconds(50));
  program.answer_pings();
  CHECK(program.ended(1) == Launches{"standby0/1"});
  CHECK(program.begun(4).empty());
  program.offer(7);
  lose_standby(program, 1);
  CHECK(program.begun(4) == Launches{"standby0/2"});
  program.offer(8);
  seed(program, 2);
  program.offer(9);
  for (std::uint32_t peer = 5; peer < 10; ++peer) {
    CAPTURE(peer);
    CHECK(program.take<node::Held>(peer).size() == 1);
    CHECK(program.take<node::Ask>(peer).empty());
  }
}

TEST_CASE("a node with a primary leaves when its standby has taken over") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.receive(1, node::Leaving{});
  program.answer_pings();
  CHECK(program.ended(1) == Launches{"shard0/1"});
  CHECK(program.take<node::Left>(1).empty());
  promote(program, 1);
  CHECK(program.take<node::Left>(1).size() == 1);
  CHECK(program.begun(3) == Launches{"standby0/2"});
}

TEST_CASE("a node with a standby leaves when another node is to have it") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.receive(2, node::Leaving{});
  program.answer_pings();
  CHECK(program.ended(2) == Launches{"standby0/1"});
  lose_standby(program, 1);
  CHECK(program.take<node::Left>(2).size() == 1);
  CHECK(program.begun(3) == Launches{"standby0/2"});
}

TEST_CASE("a node with a primary stays until the standby is in sync") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  lose_standby(program, 1);
  program.receive(1, node::Leaving{});
  CHECK(program.ended(1).empty());
  program.pass(seconds(5));
  CHECK(program.take<node::Left>(1).empty());
  seed(program, 2);
  program.answer_pings();
  CHECK(program.ended(1) == Launches{"shard0/1"});
  promote(program, 2);
  CHECK(program.take<node::Left>(1).size() == 1);
  CHECK(program.coordinator.placement().shards[0] == NodeIndex(3));
}

TEST_CASE("a primary whose node leaves ends only after an answer of its standby's node") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.receive(1, node::Leaving{});
  REQUIRE(program.take<node::Ping>(2).size() == 1);
  program.pass(milliseconds(100));
  CHECK(program.ended(1).empty());
  program.coordinator.gone(PeerId(2), "its process ended");
  lose_standby(program, 1);
  REQUIRE(program.begun(3) == Launches{"standby0/2"});
  program.answer_pings();
  CHECK(program.ended(1).empty());
  seed(program, 2);
  program.answer_pings();
  CHECK(program.ended(1) == Launches{"shard0/1"});
}

TEST_CASE("both nodes of a shard can leave at once, the standby's first") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.receive(1, node::Leaving{});
  program.receive(2, node::Leaving{});
  program.answer_pings();
  CHECK(program.ended(2) == Launches{"standby0/1"});
  CHECK(program.ended(1).empty());
  lose_standby(program, 1);
  CHECK(program.take<node::Left>(2).size() == 1);
  CHECK(program.begun(3) == Launches{"standby0/2"});
  seed(program, 2);
  program.answer_pings();
  CHECK(program.ended(1) == Launches{"shard0/1"});
  promote(program, 2);
  CHECK(program.take<node::Left>(1).size() == 1);
  CHECK(program.coordinator.placement().shards[0] == NodeIndex(3));
}

TEST_CASE("a standby that its primary does not hear is reported, unless one of them is lost") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  const bool is_lost = GENERATE(false, true);
  program.report(1, 2, node::LinkState::State::silent);
  program.report(2, 1, node::LinkState::State::silent);
  if (is_lost) program.coordinator.silent(PeerId(1));
  program.pass(seconds(1));
  CHECK(program.lost_actors.empty());
  program.pass(milliseconds(1100));
  REQUIRE(program.lost_actors.size() == (is_lost ? 0u : 1u));
  if (is_lost) return;
  CHECK_THAT(program.lost_actors.at(standby(0)),
             Contains("standby 0 on node node2:4242 cannot be reached from node node1:4242"));
  lose_standby(program, 1);
  CHECK(program.begun(3) == Launches{"standby0/2"});
  CHECK(program.lost_actors.size() == 1);
}

TEST_CASE("a primary that does not report the loss of its standby may be lost itself") {
  CoordinatedProgram program(two_replicas(), 3, kApart);
  program.run();
  program.report(2, 1, node::LinkState::State::gone);
  program.pass(seconds(5));
  CHECK(program.lost_actors.empty());
  SECTION("it reports it later") {
    program.report(1, 2, node::LinkState::State::gone);
    program.pass(milliseconds(2100));
    CHECK(program.lost_actors.contains(standby(0)));
  }
  SECTION("the patience ends") {
    program.pass(seconds(6));
    CHECK(program.lost_actors.contains(standby(0)));
  }
}

TEST_CASE("of two shards that cannot exchange norms, one with a standby elsewhere is given up") {
  Plan plan = two_replicas();
  plan.shards = 2;
  // Shard 0 and the standby of shard 0 lose each other; shard 1 has its standby on node 3.
  CoordinatedProgram program(plan, 3, "shards=1+2,standbys=2+3,workers=0");
  program.run(/*norms=*/true);
  for (const std::uint32_t node : {1, 2})
    program.report(node, 3 - node, node::LinkState::State::silent);
  program.pass(seconds(11));
  REQUIRE(program.lost_actors.size() == 2);
  CHECK(program.lost_actors.contains(standby(0)));
  CHECK(program.lost_actors.contains(shard(1)));
}

TEST_CASE("replicas on unlike machines are refused before the start") {
  CoordinatedProgram program(two_replicas(), 2, kApart);
  program.prepare();
  for (const std::uint32_t node : {1, 2}) program.coordinator.called(NodeIndex(node), PeerId(node));
  program.arithmetic = "x86-64-v4 instructions";
  program.answer(1);
  program.arithmetic = "x86-64-v3 instructions";
  program.answer(2);
  REQUIRE(program.coordinator.phase() == Coordinator::Phase::failed);
  CHECK_THAT(program.coordinator.problems().error().text,
             Contains("node2:4242: would compute other results for shard 0 than node node1:4242: "
                      "it has x86-64-v3 instructions, the other x86-64-v4 instructions") &&
                 Contains("--replicas 1"));
}

TEST_CASE("a new standby is not placed on an unlike machine") {
  CoordinatedProgram program(two_replicas(), 2, kApart);
  program.run();
  program.arithmetic = "other instructions";
  program.coordinator.gone(PeerId(1), "its process ended");
  promote(program, 1);
  join(program, 4);
  CHECK(program.begun(4).empty());
  program.arithmetic = "";
  join(program, 5);
  CHECK(program.begun(5) == Launches{"standby0/2"});
}

TEST_CASE("replicas on one machine get a warning") {
  CoordinatedProgram apart(two_replicas(), 2, kApart);
  apart.run();
  CHECK(apart.log.find("warning") == std::string::npos);
  CoordinatedProgram together(two_replicas(), 1, "");
  together.run();
  CHECK_THAT(together.log, Contains("both replicas of shard 0 (one process) are on one machine"));
}

}  // namespace leeway::test
