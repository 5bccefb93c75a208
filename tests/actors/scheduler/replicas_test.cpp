// Replicas: which actors are the replicas of each shard, and which of them is the primary.
#include "actors/scheduler/replicas.hpp"

#include <catch2/catch.hpp>

#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

using Standing = msg::Replicate::Standing;

constexpr ShardId kShard{0};
const Address kPrimary = address_of(kShard), kStandby = standby_of(kShard);
const EndReason kGone(EndReason::Kind::unreachable, "its node is gone");
const EndReason kCutOff(EndReason::Kind::cut_off, "its primary does not hear it");

struct OneShard {
  OneShard() : replicas(*job_of(plan())) {}
  static Plan plan() {
    Plan plan = tiny_plan();
    plan.shards = 1;
    plan.replicas = 2;
    return plan;
  }
  bool ended(Address actor, const EndReason& reason = kGone) {
    return replicas.ended(actor, reason, out);
  }
  /// The only order since the last call.
  msg::Replicate order(Address receiver) {
    const auto sent = out.take<msg::Replicate>();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].to == receiver);
    return sent[0].body;
  }
  /// The receiver carries out the order that it has just got.
  void carry_out(Address receiver) {
    replicas.confirmed(receiver == kStandby ? kPrimary : receiver, {order(receiver).configuration},
                       out);
  }

  Replicas replicas;
  RecordingOutbox out;
};

}  // namespace

TEST_CASE("the standby of a lost primary is ordered to take over") {
  OneShard one;
  REQUIRE(one.ended(kPrimary));
  CHECK(one.out.events<event::PrimaryLost>().size() == 1);
  const auto order = one.order(kStandby);
  CHECK(order.standing == Standing::promoted);
  CHECK(one.out.events<event::StandbyTookOver>().empty());
  one.replicas.confirmed(kPrimary, {order.configuration}, one.out);
  CHECK(one.out.events<event::StandbyTookOver>().size() == 1);
  // It has no standby now.
  CHECK_FALSE(one.ended(kPrimary));
}

TEST_CASE("a primary that has lost its standby is ordered to continue without one") {
  OneShard one;
  REQUIRE(one.ended(kStandby));
  CHECK(one.order(kPrimary).standing == Standing::alone);
  CHECK(one.ended(kStandby));  // known
  CHECK(one.out.take<msg::Replicate>().empty());
  CHECK_FALSE(one.ended(kPrimary));
}

TEST_CASE("a standby that is lost while it takes over loses its shard") {
  OneShard one;
  REQUIRE(one.ended(kPrimary));
  CHECK_FALSE(one.ended(kStandby));
}

TEST_CASE("a standby that takes over does not need to hear its earlier primary") {
  OneShard one;
  REQUIRE(one.ended(kPrimary));
  CHECK(one.ended(kStandby, kCutOff));
  CHECK(one.order(kStandby).standing == Standing::promoted);
  // Before the loss of the primary, the same report ends the standby.
  OneShard other;
  REQUIRE(other.ended(kStandby, kCutOff));
  CHECK(other.order(kPrimary).standing == Standing::alone);
}

TEST_CASE("a new standby is seeded, and counts when the primary reports that it is in sync") {
  OneShard one;
  REQUIRE(one.ended(kStandby));
  one.carry_out(kPrimary);
  one.replicas.ready(kStandby, {2}, one.out);
  const auto seeding = one.order(kPrimary);
  CHECK(seeding.standing == Standing::seeding);
  one.replicas.ready(kStandby, {2}, one.out);  // the seed may be lost
  CHECK(one.order(kPrimary) == seeding);
  SECTION("it takes over when it is in sync") {
    one.replicas.confirmed(kPrimary, {seeding.configuration}, one.out);
    CHECK(one.out.events<event::StandbyInSync>().size() == 1);
    REQUIRE(one.ended(kPrimary));
    CHECK(one.order(kStandby).standing == Standing::promoted);
  }
  SECTION("it cannot take over before") {
    CHECK_FALSE(one.ended(kPrimary));
  }
  SECTION("a report about an earlier order changes nothing") {
    one.replicas.confirmed(kPrimary, {seeding.configuration - 1}, one.out);
    CHECK(one.out.events<event::StandbyInSync>().empty());
    CHECK_FALSE(one.ended(kPrimary));
  }
  SECTION("an earlier launch is not seeded") {
    one.replicas.ready(kStandby, {1}, one.out);
    CHECK(one.out.take<msg::Replicate>().empty());
  }
}

TEST_CASE("an order without an answer is repeated when the link to its receiver works again") {
  OneShard one;
  REQUIRE(one.ended(kPrimary));
  const auto order = one.order(kStandby);
  one.replicas.send_again(kPrimary, one.out);
  CHECK(one.out.take<msg::Replicate>().empty());
  one.replicas.send_again(kStandby, one.out);
  CHECK(one.order(kStandby) == order);
  one.replicas.confirmed(kPrimary, {order.configuration}, one.out);
  one.replicas.send_again(kStandby, one.out);
  CHECK(one.out.take<msg::Replicate>().empty());
}

}  // namespace leeway::test
