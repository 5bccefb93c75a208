// Agents and a driver in one process, on in-memory meshes.
#include <catch2/catch.hpp>

#include "cluster/effects.hpp"
#include "cluster/node_name.hpp"
#include "tests/cluster/agents.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using std::chrono::milliseconds;

Plan long_plan() {
  Plan plan = tiny_plan();
  plan.consistency = plan::Asp{};
  plan.stop.epochs = 1e6;
  return plan;
}

/// A request of a program that never starts its job.
node::Ask ask_of(const std::string& who, const std::string& program, const std::string& agent) {
  const Plan plan = tiny_plan();
  node::Ask ask;
  ask.version = leeway_version();
  ask.who = who;
  ask.plan = Message(encode(plan), {});
  ask.self = 1;
  ask.nodes = {program, agent};
  ask.shards = {1, 1};
  ask.workers = {1, 1, 1};
  ask.data = {60, 20, Shape({4}), 3, 0, 0, 7};
  return ask;
}

/// A mesh with scripted answers to messages between hosts.
class FakePeer {
 public:
  using Answering = std::function<std::optional<node::Body>(const node::Body&)>;
  FakePeer(const std::shared_ptr<MemoryNet>& net, Answering answer) : answer_(std::move(answer)) {
    MeshEvents events;
    events.on_message = [this](PeerId peer, Address, Address, const Message& message) {
      const auto envelope = decode_node(message);
      if (!envelope) return;
      if (const auto body = answer_(envelope->body))
        mesh->send(peer, kHost, kHost, encode(NodeEnvelope{envelope->job, *body}));
    };
    events.on_up = [](PeerId) {};
    events.on_gone = [](PeerId, const std::string&) {};
    mesh = std::make_unique<MemoryMesh>(net, MeshOptions{}, std::move(events));
  }
  std::string name() const { return concat("127.0.0.1:", mesh->port()); }
  PeerId call(const std::string& node) {
    const auto where = parse_node(node);
    const auto peer = mesh->connect(where->host, where->port, seconds(1));
    REQUIRE(peer);
    return *peer;
  }
  void say(PeerId to, std::uint64_t job, node::Body body) {
    mesh->send(to, kHost, kHost, encode(NodeEnvelope{job, std::move(body)}));
  }

 private:
  Answering answer_;

 public:
  std::unique_ptr<MemoryMesh> mesh;
};

}  // namespace

TEST_CASE("a job on two agents trains every sample, and the agents are free for the next job") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net), two(net);
  std::vector<Blob> weights;
  for (int round = 0; round < 2; ++round) {
    Plan plan = tiny_plan();
    plan.consistency = plan::Bsp{};
    Program program(net, {one.name(), two.name()}, plan);
    const auto& totals = program.run();
    CHECK(totals.end.reason == msg::RunEnded::Reason::finished);
    CHECK(totals.end.samples_trained == 120);
    CHECK(program.trained == 120);
    CHECK(program.steps > 0);  // events of the agents
    REQUIRE_FALSE(totals.weights.empty());
    if (round == 1)
      for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(std::equal(weights[i].bytes().begin(), weights[i].bytes().end(),
                         totals.weights[i].bytes().begin()));
    weights = totals.weights;
  }
  CHECK_THAT(one.log(), Contains("began the job of the test: shard 0, worker 0, worker 2") &&
                            Contains("ended the job of the test: the run has ended; free"));
}

TEST_CASE("agents send the effects of stragglers and faults, and last counts of workers") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net), two(net);
  Plan plan = tiny_plan();
  plan.stragglers = {{.all = true, .kind = plan::FixedDelay{1}},
                     {.worker = 1, .kind = plan::ConstantFactor{2}}};
  plan.faults = {{address_of(WorkerId(2)), std::int64_t{9999}, 0, plan::Crash{}},
                 {address_of(WorkerId(1)), std::int64_t{3}, 0, plan::Killed{}}};
  Program program(net, {one.name(), two.name()}, plan);
  const auto& totals = program.run();
  CHECK(totals.end.samples_trained == 120);
  const Job& job = program.job();
  CHECK(job.disturbances->faults() == std::vector<bool>{false, true});
  const auto stragglers = job.disturbances->stragglers();
  CHECK(stragglers[0].iterations == static_cast<std::uint64_t>(program.steps) + 1);  // the killed
  CHECK(stragglers[0].added == leeway::milliseconds(program.steps + 1));
  CHECK(stragglers[1].iterations == 4);
  CHECK(stragglers[1].added > Duration{});
  const auto unreported = job.unreported->workers();
  REQUIRE(unreported.contains(WorkerId(1)));
  CHECK(totals.workers[1].iterations + unreported.at(WorkerId(1)).iterations == 3);
}

TEST_CASE(
    "a program that records events slowly gets a part of them, and learns how many are lost") {
  const auto net = std::make_shared<MemoryNet>();
  AgentProcessOptions options;
  options.trace_kept = 40;
  options.trace_underway = 20;
  RunningAgent agent(net, {}, shared_disk(), std::move(options));
  Program program(net, {agent.name()}, long_plan());
  REQUIRE(program.prepare() == "");
  REQUIRE(program.start() == "");
  REQUIRE(program.poll_until([&] { return program.steps > 100; }));
  program.handled = 0;
  const std::uint64_t lost = program.lost;
  std::this_thread::sleep_for(milliseconds(300));  // hundreds of iterations
  // The agent has sent 20 events, and sends the next ones only after an answer.
  program.driver().poll({});
  CHECK(program.handled <= 20);
  CHECK(program.poll_until([&] { return program.lost > lost + 100; }));
}

TEST_CASE("effects that do not fit the plan are not added") {
  const auto job = job_of(tiny_plan());
  CHECK_FALSE(add_effects({.fired = {0}}, *job));
  CHECK_FALSE(add_effects({.stragglers = {{}}}, *job));
  CHECK_FALSE(add_effects({.workers = {{.worker = WorkerId(3), .iterations = 5}}}, *job));
  CHECK(add_effects({.workers = {{.worker = WorkerId(2), .iterations = 5}}}, *job));
  CHECK(job->unreported->workers().at(WorkerId(2)).iterations == 5);
}

TEST_CASE("data that an agent cannot load is sent to it once") {
  register_data("brought along", [](std::uint64_t seed) {
    static int calls = 0;
    // The first call is the program's; the agent's fails.
    if (calls++ % 2 == 1) return Expected<TrainTest>(Error{"not here"});
    return load_data(plan::Synthetic{60, 20, plan::Clusters{3, 4, 3}}, seed);
  });
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent agent(net);
  Plan plan = tiny_plan();
  plan.data = plan::CustomData{"brought along"};
  Program program(net, {agent.name()}, plan);
  CHECK(program.run().end.samples_trained == 120);
  CHECK_THAT(program.log, Contains("sending the data to " + agent.name() + ": 80 samples"));
  CHECK_THAT(agent.log(), Contains("received the data"));
  Program again(net, {agent.name()}, tiny_plan());
  CHECK(again.run().end.samples_trained == 120);
  CHECK_THAT(again.log, !Contains("sending the data"));
}

TEST_CASE("one error lists all reasons why nodes cannot take part") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent good(net);
  FakePeer old(net, [](const node::Body& body) -> std::optional<node::Body> {
    if (!std::holds_alternative<node::Ask>(body)) return std::nullopt;
    node::Answer answer;
    answer.version = "0.0.1";
    return answer;
  });
  SECTION("missing nodes") {
    Program program(net, {good.name(), "127.0.0.1:1", "127.0.0.1:2"}, tiny_plan());
    CHECK_THAT(program.prepare(), Contains("2 of 3 nodes") && Contains("127.0.0.1:1") &&
                                      Contains("127.0.0.1:2") &&
                                      Contains("start `leeway node --listen 127.0.0.1:2`"));
  }
  SECTION("a node named twice") {
    Program program(net, {good.name(), good.name()}, tiny_plan());
    CHECK_THAT(program.prepare(), Contains("same node") && Contains("name it once"));
  }
  SECTION("another version") {
    Plan plan = tiny_plan();
    Program program(net, {old.name()}, plan);
    CHECK_THAT(program.prepare(), Contains("it has Leeway 0.0.1, this program has") &&
                                      Contains("the same version everywhere"));
  }
  // The valid agent is free again.
  Program program(net, {good.name()}, tiny_plan());
  CHECK(program.run().end.samples_trained == 120);
}

TEST_CASE("the refusal of a second job names the owner of the first") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent agent(net);
  Program first(net, {agent.name()}, long_plan());
  REQUIRE(first.prepare() == "");
  REQUIRE(first.start() == "");
  Program second(net, {agent.name()}, tiny_plan());
  CHECK_THAT(second.prepare(), Contains("is busy: it has been hosting the job of the test since"));
  first.vanish();
  REQUIRE(agent.logs("free"));
  Program third(net, {agent.name()}, tiny_plan());
  CHECK(third.run().end.samples_trained == 120);
}

TEST_CASE("workers of an agent that leaves stop, and the run continues without them") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net);
  auto two = std::make_unique<RunningAgent>(net);
  Program program(net, {one.name(), two->name()}, long_plan(), "shards=1");
  REQUIRE(program.prepare() == "");
  REQUIRE(program.start() == "");
  REQUIRE(program.poll_until([&] { return program.steps > 20; }));
  two->interrupt();
  REQUIRE(program.poll_until([&] { return two->has_ended(); }));
  CHECK(two->outcome());
  CHECK_THAT(two->log(), Contains("its actors here have left it"));
  std::unique_ptr<RunningAgent> three;  // ends with the job
  SECTION("another agent joins") {
    three = std::make_unique<RunningAgent>(net, program.driver().name());
    REQUIRE(program.poll_until([&] {
      return program.log.find("continues at node " + three->name()) != std::string::npos;
    }));
    const int before = program.steps;
    REQUIRE(program.poll_until([&] { return program.steps > before + 20; }));
    RunningAgent four(net, program.driver().name());
    REQUIRE(program.poll_until([&] { return four.has_ended(); }));
    CHECK_THAT(four.outcome().error().text, Contains("has all its 3 workers"));
  }
  // An agent with shards stays.
  one.interrupt();
  CHECK(one.logs("ending now would lose the job"));
  program.driver().host().send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
  CHECK(program.run_to_end().end.reason == msg::RunEnded::Reason::interrupted);
  CHECK(comes_true([&] { return one.has_ended(); }));  // with the job
}

TEST_CASE("an agent that joins before the start of the job waits for it") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net);
  Program program(net, {one.name()}, long_plan(), "worker2=later");
  RunningAgent two(net, program.driver().name());
  auto gone = std::make_unique<RunningAgent>(net, program.driver().name());
  REQUIRE(program.prepare() == "");
  gone->interrupt();
  REQUIRE(comes_true([&] { return gone->has_ended(); }));
  const std::string its_name = gone->name();
  gone.reset();
  REQUIRE(program.start() == "");
  CHECK(program.poll_until([&] {
    return program.log.find("worker 2 continues at node " + two.name()) != std::string::npos;
  }));
  CHECK_THAT(program.log, !Contains(its_name));
  program.driver().host().send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
  program.run_to_end();
  CHECK(comes_true([&] { return two.has_ended(); }));
}

TEST_CASE("an agent that waits for the job of one program refuses that of another") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net);
  Program program(net, {one.name()}, long_plan(), "worker2=later");
  RunningAgent two(net, program.driver().name());
  REQUIRE(program.poll_until(
      [&] { return two.log().find("for the start of the job") != std::string::npos; }));
  Program other(net, {two.name()}, long_plan());
  CHECK_THAT(other.prepare(), Contains("is busy: it waits at " + program.driver().name()));
  REQUIRE(program.prepare() == "");
  REQUIRE(program.start() == "");
  CHECK(program.poll_until([&] {
    return program.log.find("worker 2 continues at node " + two.name()) != std::string::npos;
  }));
  program.driver().host().send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
  program.run_to_end();
  CHECK(comes_true([&] { return two.has_ended(); }));
}

TEST_CASE("a pipeline whose agents lose their connection goes on over another") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent one(net), two(net);
  Plan plan = long_plan();
  plan.workers = 4;
  plan.pipeline.stages = 2;
  Program program(net, {one.name(), two.name()}, plan, "shards=0,workers=1,worker3=2");
  REQUIRE(program.prepare() == "");
  REQUIRE(program.start() == "");
  REQUIRE(program.poll_until([&] { return program.steps > 20; }));
  const auto mesh_of = [&](const RunningAgent& agent) {
    std::lock_guard lock(net->mutex);
    return net->meshes.at(parse_node(agent.name())->port);
  };
  mesh_of(one)->cut(*mesh_of(two));
  const auto two_logs = [&](const std::string& text) {
    return program.poll_until([&] { return two.log().find(text) != std::string::npos; });
  };
  REQUIRE(two_logs("worker 3 of the job of the test ends"));
  REQUIRE(two_logs("worker 3 of the job of the test continues here"));
  const int before = program.steps_of[3];
  CHECK(program.poll_until([&] { return program.steps_of[3] > before + 10; }));
  program.driver().host().send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
  CHECK(program.run_to_end().end.reason == msg::RunEnded::Reason::interrupted);
}

TEST_CASE("an agent ends the job of a program that is silent for too long") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent agent(net);
  FakePeer program(net, [](const node::Body&) { return std::nullopt; });
  const PeerId peer = program.call(agent.name());
  program.say(peer, 5, ask_of("the silent one", program.name(), agent.name()));
  Program second(net, {agent.name()}, tiny_plan());
  CHECK_THAT(second.prepare(), Contains("the job of the silent one"));
  program.mesh->fall_silent(peer);
  CHECK(agent.logs("gave back the job of the silent one: no sign of life"));
}

TEST_CASE("while an agent's connection to its program is lost, another program's request waits") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent agent(net);
  FakePeer program(net, [](const node::Body&) { return std::nullopt; });
  std::mutex mutex;
  std::vector<std::string> busy;
  std::atomic<int> pongs = 0;
  FakePeer next(net, [&](const node::Body& body) -> std::optional<node::Body> {
    std::lock_guard lock(mutex);
    if (const auto* answer = std::get_if<node::Answer>(&body)) busy.push_back(answer->busy);
    if (std::holds_alternative<node::Pong>(body)) ++pongs;
    return std::nullopt;
  });
  const auto answered = [&] {
    std::lock_guard lock(mutex);
    return busy.size() == 1;
  };
  const PeerId old_job = program.call(agent.name()), new_job = next.call(agent.name());
  program.say(old_job, 5, ask_of("the old one", program.name(), agent.name()));
  program.mesh->hold_connection(old_job, true);
  next.say(new_job, 6, ask_of("the new one", next.name(), agent.name()));
  next.say(new_job, 6, node::Ping{});
  REQUIRE(comes_true([&] { return pongs == 1; }));  // so the agent has read the request
  CHECK_FALSE(answered());
  SECTION("it is granted when the first program is gone") {
    program.mesh->leave(old_job);
    REQUIRE(comes_true(answered));
    CHECK(busy.front().empty());
  }
  SECTION("it is refused when the first program is back") {
    program.mesh->hold_connection(old_job, false);
    REQUIRE(comes_true(answered));
    CHECK_THAT(busy.front(), Contains("it has been hosting the job of the old one since"));
  }
}

TEST_CASE(
    "a program that is called as a node, and a node that is called as a program, name the "
    "mistake") {
  const auto net = std::make_shared<MemoryNet>();
  RunningAgent agent(net);
  Program first(net, {agent.name()}, long_plan());
  REQUIRE(first.prepare() == "");
  REQUIRE(first.start() == "");
  Program second(net, {first.driver().name()}, tiny_plan());
  auto prepared = std::async(std::launch::async, [&] { return second.prepare(); });
  REQUIRE(first.poll_until(
      [&] { return prepared.wait_for(milliseconds(0)) == std::future_status::ready; }));
  CHECK_THAT(prepared.get(),
             Contains(first.driver().name() + ": is the program of the test, not a node"));
  RunningAgent lost(net, agent.name());
  REQUIRE(first.poll_until([&] { return lost.has_ended(); }));
  CHECK_THAT(lost.outcome().error().text,
             Contains(agent.name() + " is a node, not a program") &&
                 Contains("the program of its job is at " + first.driver().name()));
}

}  // namespace leeway::test
