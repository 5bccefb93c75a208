// RoundCloser: rounds that are closed without the last pushes.
#include "actors/scheduler/round_closer.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

/// Three workers with samples of round 0; two pushes close a round.
struct OpenRound : SchedulerParts {
  OpenRound() : SchedulerParts(workers_plan(3, plan::Backup{1})) {
    set_running({0, 1, 2});
    for (const std::uint32_t lead : {0u, 1u, 2u}) REQUIRE(request_lease(lead, Iteration(0)));
    out.forget();
  }
  bool close(std::vector<WorkerId> contributors) {
    return rounds.close({Iteration(0), std::move(contributors), roster.view()}, out);
  }
};

}  // namespace

TEST_CASE("a round closes with enough pushes; all shards and the straggling worker get a message") {
  OpenRound parts;
  CHECK_FALSE(parts.close({WorkerId(0)}));
  CHECK(parts.out.has_sent_nothing());
  CHECK(parts.close({WorkerId(0), WorkerId(2)}));
  const auto closed = parts.out.take<msg::CloseRound>();
  REQUIRE(closed.size() == 2);  // one to each shard
  CHECK(closed[0].body.contributors == std::vector{WorkerId(0), WorkerId(2)});
  const auto dropped = parts.out.take<msg::PushDropped>();
  REQUIRE(dropped.size() == 1);
  CHECK(dropped[0].to == address_of(WorkerId(1)));
  CHECK(dropped[0].body.next == Iteration(1));
  CHECK(parts.out.happened<event::LeaseReturned>() == Workers{1});
  CHECK_FALSE(parts.close({WorkerId(0), WorkerId(2)}));  // already closed
}

TEST_CASE("a proposal by an older view of the membership closes nothing") {
  OpenRound parts;
  const View older = parts.roster.view();
  parts.roster.next_view();
  CHECK_FALSE(parts.rounds.close({Iteration(0), {WorkerId(0), WorkerId(2)}, older}, parts.out));
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("a member that is being admitted starts after the closed round") {
  OpenRound parts;
  parts.roster.enter(WorkerId(1), Member::State::admitting);
  REQUIRE(parts.close({WorkerId(0), WorkerId(2)}));
  CHECK(parts.member(1).start == Iteration(1));
  CHECK(parts.out.receivers_of<msg::PushDropped>().empty());
}

TEST_CASE("after a broken link PushDropped is sent again to the straggling worker") {
  OpenRound parts;
  parts.rounds.send_again(WorkerId(1), parts.out);
  CHECK(parts.out.has_sent_nothing());
  REQUIRE(parts.close({WorkerId(0), WorkerId(2)}));
  parts.out.forget();
  for (const std::uint32_t worker : {0u, 1u}) parts.rounds.send_again(WorkerId(worker), parts.out);
  CHECK(parts.out.receivers_of<msg::PushDropped>() == Workers{1});
  parts.member(1).start = Iteration(1);
  parts.rounds.send_again(WorkerId(1), parts.out);
  CHECK(parts.out.has_sent_nothing());
}

}  // namespace leeway::test
