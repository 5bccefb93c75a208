#include "messages/envelope.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/messages/conversations.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

Envelope must(const Expected<Envelope>& envelope) {
  INFO((envelope ? "" : envelope.error().text));
  REQUIRE(envelope);
  return *envelope;
}

}  // namespace

TEMPLATE_TEST_CASE("a decoded message equals the sent one and refers to its tensors", "", Actors,
                   Hosts) {
  rc::prop("round trip", [] {
    for (const auto& sent : TestType::any()) {
      const auto got = TestType::read(encode(sent));
      if (!got) RC_FAIL(got.error().text);
      RC_LOG() << name_of(sent.body);
      RC_ASSERT(*got == sent);
    }
  });
}

TEMPLATE_TEST_CASE("equal envelopes have equal headers", "", Actors, Hosts) {
  rc::prop("encoding a decoded message", [] {
    for (const auto& sent : TestType::any()) {
      const Message first = encode(sent);
      RC_ASSERT(encode(*TestType::read(first)) == first);
    }
  });
}

TEST_CASE("a loss that is NaN arrives unchanged") {
  const Envelope got =
      must(decode(encode({.body = msg::Diverged{Iteration(3), std::nan(""), ""}})));
  CHECK(std::isnan(std::get<msg::Diverged>(got.body).loss));
}

TEST_CASE("sessions and placement of an envelope are 1 by default") {
  const Envelope got = must(decode(encode({.body = msg::Join{}})));
  CHECK(got.session == Session(1));
  CHECK(got.placement == 1);
  CHECK(got.shard_session == Session(1));
}

TEST_CASE("a message holds references to its tensors, not copies") {
  Blob weights = Blob::floats(6);
  auto message = std::make_unique<Message>(
      encode({.body = msg::Weights{Iteration(3),
                                   {{BlockId(1), Version(7), DType::f32, Shape{2, 3}, weights}}}}));
  CHECK_FALSE(weights.unique());
  REQUIRE(message->blobs().size() == 1);
  CHECK(message->blobs()[0].same_as(weights));
  {
    const Envelope got = must(decode(*message));
    const auto& block = std::get<msg::Weights>(got.body).blocks.at(0);
    CHECK(block.data.same_as(weights));
    CHECK(block.shape == Shape{2, 3});
    message.reset();
    CHECK_FALSE(weights.unique());  // the envelope holds it
  }
  CHECK(weights.unique());
}

TEST_CASE("a message keeps many blocks in order") {
  msg::SnapshotState state;
  for (std::uint32_t i = 0; i < 1000; ++i)
    state.blocks.push_back({BlockId(i), Version(i), DType::f32, Shape{1}, Blob::floats(1)});
  const Envelope got = must(decode(encode({.body = state})));
  CHECK(std::get<msg::SnapshotState>(got.body) == state);
}

TEST_CASE("a text keeps all of its bytes, also after a zero byte") {
  const std::string text("ends \0 not here, \xc3\xa9\n", 20);
  const Envelope got = must(decode(encode({.body = msg::Evicted{WorkerId(1), text, 0, false}})));
  CHECK(std::get<msg::Evicted>(got.body).reason == text);
}

TEST_CASE("each kind of body has a unique name, in the order of the envelope") {
  std::set<std::string_view> names;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (names.insert(name_of(Body(std::variant_alternative_t<I, Body::variant>()))), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Body::variant>>());
  CHECK(names.size() == std::variant_size_v<Body::variant>);
  CHECK(name_of(Body(msg::Pull{})) == "pull");
  CHECK(name_of(Body(msg::WantLease{})) == "want lease");
  CHECK(name_of(Body(msg::SnapshotState{})) == "snapshot state");
  CHECK(name_of(Body(msg::Interrupt{})) == "interrupt");
  CHECK(msg::name_of(msg::Refused::Reason::stale_view) == "stale view");
}

TEST_CASE("a message holds its blobs until its last copy is gone") {
  const Blob blob = Blob::allocate(64);
  {
    std::vector<Blob> blobs(3, blob);
    Message message({1, 2}, std::move(blobs)), copy = message, other;
    message = other;
    CHECK(message.header().empty());
    CHECK(message.blobs().empty());
    REQUIRE(copy.blobs().size() == 3);
    CHECK(copy.blobs()[2].same_as(blob));
    CHECK(std::vector(copy.header().begin(), copy.header().end()) ==
          std::vector<std::uint64_t>{1, 2});
    other = std::move(copy);
    CHECK(other.blobs().size() == 3);
    CHECK_FALSE(blob.unique());
  }
  CHECK(blob.unique());
}
