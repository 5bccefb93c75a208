#include "messages/node.hpp"

#include <catch2/catch.hpp>

#include "tests/messages/conversations.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

const std::vector<std::uint64_t> kPlan = {4, 7, 1};

node::Ask an_ask() {
  node::Ask ask;
  ask.version = "0.1.0";
  ask.who = "fashion-mlp (process 7 on a)";
  ask.plan = Message(kPlan, {});
  ask.self = 1;
  ask.nodes = {"", "a:1", "b:2"};
  ask.shards = {1, 2};
  ask.workers = {1, 2, 0xffffffff};
  ask.data = {100, 10, Shape({1, 2, 2}), 3, 0, 0.5f, 77, 4};
  ask.trace = true;
  ask.initial_weights = {Blob::floats(3)};
  return ask;
}

}  // namespace

TEST_CASE("the plan inside an Ask arrives unchanged") {
  const auto back = decode_node(encode(NodeEnvelope{1, an_ask()}));
  REQUIRE(back);
  const auto words = std::get<node::Ask>(back->body).plan.header();
  CHECK(std::vector<std::uint64_t>(words.begin(), words.end()) == kPlan);
}

TEST_CASE("an error in a message between hosts names the field") {
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
  CHECK_THAT(refused([](auto& ask) { ask.data.classes = 0; }),
             Contains("data.classes is 0 and targets is 0"));
  CHECK_THAT(refused([](auto& ask) { ask.data.labels = 0; }), Contains("data.labels is 0"));
  CHECK_THAT(refused([](auto& ask) { ask.data.train_samples = -1; }),
             Contains("data.train_samples is -1"));
  CHECK(error_of(node::Moved{worker(65536), 1, 1}) ==
        "moved: actor.index is 65536, must be below 65536");
  CHECK(error_of(node::Moved{worker(0), 4096, 1}) == "moved: node is 4096, must be below 4096");
  CHECK(error_of(node::Ended{{RoleKind::shard, 4096}, 1, ""}) ==
        "ended: actor.index is 4096, must be below 4096");
  const auto other =
      decode_node(Message(words_of(encode(NodeEnvelope{1, node::Linked{}})), {Blob::floats(1)}));
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text, Contains("linked: has 1 blobs"));
}
