#include "messages/node.hpp"

#include <catch2/catch.hpp>

#include "core/rng.hpp"
#include "plan/plan.hpp"

using namespace leeway;
using Catch::Contains;

namespace {

node::Ask an_ask() {
  node::Ask ask;
  ask.version = "0.1.0";
  ask.who = "fashion-mlp (process 7 on a)";
  Plan plan;
  plan.model = {plan::Linear{3}};
  ask.plan = encode(plan);
  ask.self = 1;
  ask.nodes = {"", "a:1", "b:2"};
  ask.shards = {1, 2};
  ask.workers = {1, 2, 0xffffffff};
  ask.data = {100, 10, Shape({1, 2, 2}), 3, 0, 0.5f, 77, 4};
  ask.trace = true;
  ask.initial_weights = {Blob::floats(3)};
  return ask;
}

node::Status a_status() {
  node::Status status;
  status.version = "0.1.0";
  status.name = "a:1";
  status.node = 1;
  status.job = "line";
  status.seconds = 1.5;
  status.nodes = {"p:1", "a:1"};
  status.actors = {{RoleKind::shard, 1}, {RoleKind::worker, 3}, kScheduler};
  status.clocks = {{WorkerId(3), 17}};
  status.parked = {{ShardId(1), WorkerId(3), 17, {0, 2}}};
  status.stages = 4;
  status.did = {{WorkerId(3), 2, 17, 5}};
  status.links = {{2, "up", true, 1, 2, 3, 4, 5}};
  return status;
}

/// One of each arm, in the order of the variant.
std::vector<node::Body> all_bodies() {
  node::Events events;
  events.events.push_back({5, {RoleKind::worker, 2}, 3, WorkerId(2), 4, 5, 6, 7, 8, "why", 9});
  return {an_ask(),
          node::Answer{"0.1.0", 8, 1u << 30, 2, "busy", {"one", "two"}, true},
          node::Chunk{true, 5, 2, Blob::floats(8), Blob::floats(2)},
          node::Stored{7},
          node::Start{},
          node::Here{2, "b:2"},
          node::Linked{},
          node::Refused{"no"},
          node::Begin{},
          node::Ended{{RoleKind::shard, 1}, 2, "died"},
          node::Moved{WorkerId(3), 2, 4},
          node::Leaving{},
          node::Left{},
          node::End{"over"},
          node::Done{},
          node::Offer{"c:3"},
          node::StatusRequest{},
          a_status(),
          node::Ping{9},
          node::Pong{9, 11},
          events};
}

std::vector<std::uint64_t> words_of(const Message& message) {
  return {message.header().begin(), message.header().end()};
}

}  // namespace

TEST_CASE("each message between hosts is read as it was written") {
  const auto bodies = all_bodies();
  REQUIRE(bodies.size() == std::variant_size_v<node::Body>);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    REQUIRE(bodies[i].index() == i);
    const Message message = encode(NodeEnvelope{42, bodies[i]});
    const auto back = decode_node(message);
    INFO(node::name_of(bodies[i]) << (back ? "" : ": " + back.error().text));
    REQUIRE(back);
    CHECK(back->job == 42);
    CHECK(back->body.index() == i);
    const Message again = encode(*back);
    CHECK(words_of(again) == words_of(message));
    REQUIRE(again.blobs().size() == message.blobs().size());
    for (std::size_t b = 0; b < message.blobs().size(); ++b)
      CHECK(again.blobs()[b].same_as(message.blobs()[b]));
  }
}

TEST_CASE("the plan inside a question is read as it was written") {
  const auto back = decode_node(encode(NodeEnvelope{1, an_ask()}));
  REQUIRE(back);
  const auto plan = decode_plan(std::get<node::Ask>(back->body).plan);
  REQUIRE(plan);
  CHECK(plan->model == std::vector<plan::Layer>{plan::Linear{3}});
}

TEST_CASE("what a host must not say is refused by the field's name") {
  const auto refused = [](auto change) {
    auto ask = an_ask();
    change(ask);
    const auto back = decode_node(encode(NodeEnvelope{1, ask}));
    return back ? std::string("accepted") : back.error().text;
  };
  CHECK_THAT(refused([](auto& ask) { ask.self = 3; }), Contains("ask: self is 3"));
  CHECK_THAT(refused([](auto& ask) { ask.shards = {3}; }), Contains("node of a shard is 3"));
  CHECK_THAT(refused([](auto& ask) { ask.workers = {7}; }), Contains("node of a worker is 7"));
  CHECK_THAT(refused([](auto& ask) {
               ask.data.shape = Shape({1 << 20, 1 << 20});
             }),
             Contains("data.shape"));
  CHECK_THAT(refused([](auto& ask) { ask.data.classes = 0; }), Contains("0 classes and 0 targets"));
  CHECK_THAT(refused([](auto& ask) { ask.data.labels = 0; }), Contains("data.labels is 0"));
  CHECK_THAT(refused([](auto& ask) { ask.data.train_samples = -1; }),
             Contains("data.train_samples is -1"));
  const auto worker = decode_node(encode(NodeEnvelope{1, node::Moved{WorkerId(65536), 1, 1}}));
  REQUIRE_FALSE(worker);
  CHECK_THAT(worker.error().text, Contains("moved: worker is 65536"));
  const auto other =
      decode_node(Message(words_of(encode(NodeEnvelope{1, node::Linked{}})), {Blob::floats(1)}));
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text, Contains("linked: has 1 blobs"));
}

TEST_CASE("a damaged message between hosts is refused or read, and nothing else happens") {
  Rng rng = Rng::stream(7, 1);
  for (const auto& body : all_bodies()) {
    const Message message = encode(NodeEnvelope{42, body});
    for (int round = 0; round < 300; ++round) {
      auto words = words_of(message);
      for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
        words[rng.below(words.size())] ^= std::uint64_t{1} << rng.below(64);
      if (rng.below(4) == 0) words.resize(rng.below(words.size() + 1));
      const auto back =
          decode_node(Message(words, {message.blobs().begin(), message.blobs().end()}));
      if (back) CHECK(encode(*back).header().size() > 0);
    }
  }
}
