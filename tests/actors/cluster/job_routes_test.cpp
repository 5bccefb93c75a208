// The routes of one node of a job.
#include "actors/cluster/job_routes.hpp"

#include <catch2/catch.hpp>

#include "messages/message.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

constexpr WorkerId kWorker1{1};
constexpr Address kShard0{RoleKind::shard, 0};

/// Counts the messages that are delivered to its actors.
class CountingHost final : public ActorHost {
 public:
  int delivered = 0, reported_down = 0;

 private:
  void add(Address, std::shared_ptr<Role>) override {}
  void start() override {}
  void deliver(Address, Address, Message) override { ++delivered; }
  void report_down(Address, Address, const EndReason&) override { ++reported_down; }
  void kill(Address, const EndReason&) override {}
  void restart(Address, std::shared_ptr<Role>) override {}
  void forget(Address, const EndReason&) override {}
  void report_link(Address) override {}
  bool lives(Address) const override { return true; }
};

/// Node 1 hosts the shard. Worker 1 is on node 2.
class NodeOne {
 public:
  NodeOne() {
    Plan plan = tiny_plan();
    plan.workers = 2;
    const auto placement = place_actors(2, plan, "shards=1,worker0=1,worker1=2");
    NodeHostOptions options = routes.host_options(*placement, seconds(2));
    options.later = [](const std::function<void()>& call) { call(); };
    node.emplace(job_of(plan), std::vector<Audience*>{}, host, std::move(options));
    routes.attach(*node);
    node->start();
  }
  /// Worker 1 sends on the connection to that peer.
  void receive(PeerId peer) {
    routes.on_message(peer, address_of(kWorker1), kShard0, encode({.body = msg::Leave{kWorker1}}));
  }
  void moved(PeerId peer, std::uint32_t node_number, std::uint32_t launch) {
    routes.on_notice(peer, {7, node::Moved{address_of(kWorker1), node_number, launch}});
  }

  std::vector<PeerId> sent_to;
  CountingHost host;
  JobRoutes routes{
      {.number = 7,
       .self = NodeIndex(1),
       .names = {"program:1", "a:1", "b:1"},
       .send = [this](PeerId peer, Address, Address, const Message&) { sent_to.push_back(peer); }}};
  std::optional<NodeHost> node;
};

}  // namespace

TEST_CASE("a process that joins again under the same connection is its new node only") {
  NodeOne one;
  const PeerId peer(4);
  one.routes.link(NodeIndex(2), peer, "b:1");
  one.receive(peer);
  CHECK(one.host.delivered == 1);
  one.routes.link(NodeIndex(3), peer, "b:1");
  CHECK(one.routes.node_of(peer) == NodeIndex(3));
  CHECK_FALSE(one.routes.peer_of(NodeIndex(2)));
  // The worker's node 2 exists no more.
  one.receive(peer);
  CHECK(one.host.delivered == 1);
  one.moved(peer, 3, 2);
  one.receive(peer);
  CHECK(one.host.delivered == 2);
  one.node->send_out(kShard0, address_of(kWorker1), encode({.body = msg::Leave{kWorker1}}));
  CHECK(one.sent_to == std::vector{peer});
  CHECK(one.node->refused() == 1);
}

TEST_CASE("a node with a new connection is reached there") {
  NodeOne one;
  one.routes.link(NodeIndex(2), PeerId(4), "b:1");
  one.routes.on_gone(PeerId(4), "cut");
  CHECK_FALSE(one.routes.peer_of(NodeIndex(2)));
  one.routes.link(NodeIndex(2), PeerId(5), "b:1");
  CHECK(one.routes.peer_of(NodeIndex(2)) == PeerId(5));
  one.receive(PeerId(5));
  CHECK(one.host.delivered == 1);
  // Late news of the first connection.
  one.routes.on_gone(PeerId(4), "cut");
  CHECK(one.routes.peer_of(NodeIndex(2)) == PeerId(5));
}

TEST_CASE("an actor that is watched after its node is lost is reported at once") {
  NodeOne one;
  one.routes.link(NodeIndex(2), PeerId(4), "b:1");
  one.node->watch_out(kShard0, address_of(kWorker1));
  CHECK(one.host.reported_down == 0);
  one.routes.on_gone(PeerId(4), "its process ended");
  CHECK(one.host.reported_down == 1);
  one.node->watch_out(address_of(WorkerId(0)), address_of(kWorker1));
  CHECK(one.host.reported_down == 2);
}

TEST_CASE("peers that are no node of the job are ignored") {
  NodeOne one;
  one.receive(PeerId(9));
  one.routes.on_silent(PeerId(9));
  one.routes.on_gone(PeerId(9), "cut");
  CHECK(one.host.delivered == 0);
  CHECK(one.node->refused() == 0);
  CHECK(one.routes.links().empty());
}

}  // namespace leeway::test
