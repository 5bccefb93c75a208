// An agent that has joined a program: its answer, and the end of that program's job.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "actors/cluster/agent.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

constexpr PeerId kProgram{1};
constexpr std::uint64_t kJob = 7;

/// A process that accepts every job.
class JoinedNode final : private Agent::Site {
 public:
  /// Calls the program, has offered itself to it, or is asked for its part of the job.
  enum class Begins : std::uint8_t { calling, offered, asked };
  explicit JoinedNode(Begins begins = Begins::asked) : agent({.join = "the program"}, *this) {
    if (begins == Begins::calling) return;
    agent.called_program(kProgram);
    if (begins == Begins::offered) return;
    ask_by(kProgram);
    REQUIRE(agent.is_busy());
  }
  void ask_by(PeerId program) {
    node::Ask ask;
    ask.self = 1;
    ask.nodes = {"the program", "the node"};
    node::Body body = ask;
    agent.received(program, kJob, body);
  }
  /// It runs its part.
  void run() {
    agent.loaded(true);
    receive(node::Start{});
    agent.made({});
    receive(node::Begin{});
  }

  void receive(node::Body body) { receive(kProgram, std::move(body)); }
  void receive(PeerId peer, node::Body body) { agent.received(peer, kJob, body); }
  template <class T>
  std::vector<T> take() {
    std::vector<T> taken;
    for (const auto& body : std::exchange(sent_, {}))
      if (const auto* one = std::get_if<T>(&body)) taken.push_back(*one);
    return taken;
  }

  std::int64_t now = 1;
  bool is_making = false;
  std::vector<std::string> called;

 private:
  std::int64_t now_ns() const override { return now; }
  std::string time_of_day() const override { return "14:03:59"; }
  std::string name() const override { return "the node"; }
  void say(const std::string&) override {}
  void warn(const std::string&) override {}
  void call(NodeIndex, const std::string& name) override { called.push_back(name); }
  void call_program() override {}
  void send(PeerId, std::uint64_t, node::Body body) override { sent_.push_back(std::move(body)); }
  void leave(PeerId) override {}
  bool is_connected(PeerId) const override { return true; }
  bool reserve(PeerId, std::uint64_t, const node::Ask&, node::Answer&) override { return true; }
  void load_data() override {}
  Expected<std::int64_t> store(const node::DataPiece&, bool&) override { return Error{"no data"}; }
  void make_actors() override { is_making = true; }
  void link(NodeIndex, PeerId, const std::string&) override {}
  void begin() override {}
  void launch(Address, std::uint32_t) override {}
  void end_launch(Address, std::uint32_t, const std::string&) override {}
  void moved(Address, NodeIndex, std::uint32_t) override {}
  std::vector<NodeHost::HostedActor> hosted() const override { return {}; }
  bool has_replica() const override { return false; }
  void end_job(const std::string&) override {}

  std::vector<node::Body> sent_;

 public:
  Agent agent;
};

}  // namespace

TEST_CASE("an agent that waits for a program's job refuses that of another program") {
  JoinedNode node(JoinedNode::Begins::offered);
  node.receive(node::Held{"a worker that is missing"});
  node.ask_by(PeerId{2});
  CHECK_FALSE(node.agent.is_busy());
  const auto answers = node.take<node::Answer>();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].busy == "it waits at the program for a part of that program's job");
  node.ask_by(kProgram);
  CHECK(node.agent.is_busy());
  CHECK_FALSE(node.agent.finished());
}

TEST_CASE("an agent answers a program only when it has reached the one that it joins") {
  JoinedNode node(JoinedNode::Begins::calling);
  const bool is_own = GENERATE(true, false);
  const PeerId asks = is_own ? kProgram : PeerId{2};
  node.ask_by(asks);
  CHECK_FALSE(node.agent.is_busy());
  node.agent.tick();
  CHECK(node.take<node::Answer>().empty());
  node.agent.called_program(kProgram);
  node.agent.tick();
  CHECK(node.agent.is_busy() == is_own);
  CHECK(node.take<node::Answer>().size() == (is_own ? 0 : 1));  // its own one when data is loaded
}

TEST_CASE("an agent answers when its data is loaded, and reports every second that it loads") {
  JoinedNode node;
  CHECK(node.take<node::Answer>().empty());
  for (int i = 0; i < 3; ++i) {
    node.now += seconds(1).ns + 1;
    node.agent.tick();
    CHECK(node.take<node::LoadingData>().size() == 1);
    node.agent.tick();
    CHECK(node.take<node::LoadingData>().empty());
  }
  node.receive(node::DataPiece{});
  node.receive(node::Start{});  // too early
  CHECK_FALSE(node.is_making);
  const bool has_data = GENERATE(true, false);
  node.agent.loaded(has_data);
  const auto answers = node.take<node::Answer>();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].wants_data == !has_data);
  node.receive(node::Start{});
  CHECK(node.is_making == has_data);
}

TEST_CASE("an agent calls the nodes of its order, and others call it") {
  constexpr PeerId kEarlier{2}, kLater{3};
  JoinedNode node;
  node.agent.loaded(true);
  node.receive(node::Start{{"", "", "", "earlier"}});
  node.agent.made({});
  CHECK(node.called == std::vector<std::string>{"earlier"});
  node.agent.called(NodeIndex(3), kEarlier);
  CHECK(node.take<node::Here>().size() == 1);
  CHECK(node.take<node::Linked>().empty());
  node.receive(kEarlier, node::Here{3, "earlier", {}});
  CHECK(node.take<node::Here>().empty());  // an answer is not answered
  node.receive(node::Begin{});
  node.receive(kLater, node::Here{2, "later", {}});
  CHECK(node.take<node::Here>().size() == 1);
}

TEST_CASE("an agent whose job ends while it loads the data is free, and ignores the data") {
  JoinedNode node;
  node.receive(node::End{"interrupted"});
  CHECK_FALSE(node.agent.is_busy());
  CHECK(node.take<node::Done>().size() == 1);
  node.agent.loaded(true);
  CHECK(node.take<node::Answer>().empty());
}

TEST_CASE("a joined agent ends well if its program leaves right after the end of the job") {
  JoinedNode node;
  node.run();
  node.receive(node::End{"the run has ended"});
  CHECK(node.agent.finished());
  node.agent.gone(kProgram, "closed");
  CHECK(node.agent.outcome());
  CHECK_FALSE(node.agent.has_lost_program());
}

TEST_CASE("a joined agent reports a program that is lost before the end of the job") {
  JoinedNode node;
  node.run();
  std::string reason;
  SECTION("its process ends") {
    node.agent.gone(kProgram, "connection reset");
    reason = "the program is gone: connection reset";
  }
  SECTION("it is silent") {
    node.agent.silent(kProgram);
    node.now += kProgramSilence.ns + 1;
    node.agent.tick();
    reason = "no sign of life from the program for 15 s";
  }
  CHECK_FALSE(node.agent.is_busy());
  CHECK(node.agent.finished());
  CHECK(node.agent.has_lost_program());
  REQUIRE_FALSE(node.agent.outcome());
  CHECK_THAT(node.agent.outcome().error().text, Contains(reason));
}

}  // namespace leeway::test
