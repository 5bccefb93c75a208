// Evictions and Departures: how members are taken out of the run.
#include "actors/scheduler/departures.hpp"

#include <catch2/catch.hpp>

#include "actors/scheduler/evictions.hpp"
#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

using State = Member::State;
using After = Departures::AfterStopped;

}  // namespace

TEST_CASE("an evicted member is fenced at each shard, and settled with the last answer") {
  SchedulerParts parts(workers_plan(2));
  parts.runs({0, 1});
  CHECK(parts.evictions.evict(WorkerId(1), "boom", parts.out));
  CHECK_FALSE(parts.evictions.evict(WorkerId(1), "boom", parts.out));  // it is out
  const auto asked = parts.out.take<msg::Fence>();
  REQUIRE(asked.size() == 2);
  CHECK(parts.out.told<msg::Refused>() == Workers{1});
  CHECK(parts.out.happened<event::Evicted>() == Workers{1});
  const msg::Fenced none{WorkerId(1), {}, {}};
  CHECK_FALSE(parts.evictions.fenced(ShardId(0), {WorkerId(1), Clock(3), {}}));
  CHECK_FALSE(parts.evictions.fenced(ShardId(0), none));                   // a repeat
  CHECK_FALSE(parts.evictions.fenced(ShardId(1), {WorkerId(0), {}, {}}));  // it was not fenced
  const auto partial = parts.evictions.fenced(ShardId(1), {WorkerId(1), Clock(2), {}});
  REQUIRE(partial);
  CHECK(partial->whole() == Clock(2));
  CHECK(partial->count() == 1);
}

TEST_CASE("a member that the run parts with is removed, and the monitor hears why") {
  SchedulerParts parts(workers_plan(2));
  parts.runs({0, 1});
  REQUIRE(parts.leases_to(1, Iteration(0)));
  const auto lease = parts.out.take<msg::Lease>().at(0).body;
  parts.evictions.evict(WorkerId(1), "boom", parts.out);
  parts.out.forget();
  parts.departures.part_with(WorkerId(1), {}, parts.out);
  CHECK(parts.member(1).state == State::gone);
  CHECK(parts.out.pairs<msg::Remove>().size() == 2);
  const auto evicted = parts.out.take<msg::Evicted>();
  REQUIRE(evicted.size() == 1);
  CHECK(evicted[0].body.reason == "boom");
  CHECK(evicted[0].body.returned_samples == static_cast<std::uint64_t>(lease.end - lease.begin));
}

TEST_CASE("a member is idle when the clock of its present Start says so") {
  SchedulerParts parts(workers_plan(2));
  parts.runs({0, 1});
  CHECK_FALSE(parts.departures.idle(WorkerId(1), {{}, 0}, parts.out));  // of an earlier Start
  CHECK(parts.departures.idle(WorkerId(1), {{}, 1}, parts.out));
  CHECK(parts.member(1).state == State::idle);
  CHECK(parts.out.pairs<msg::Remove>().size() == 2);
}

TEST_CASE("a member that is asked to leave has left when it has stopped") {
  SchedulerParts parts(workers_plan(2));
  parts.runs({0, 1});
  CHECK(parts.departures.stopped(WorkerId(1), {{}, 1}, parts.out) ==
        After::waits);  // without a Leave
  CHECK(parts.departures.leave(WorkerId(1), parts.out));
  CHECK(parts.out.told<msg::Stop>() == Workers{1});
  CHECK(parts.out.events<event::Left>().empty());
  parts.departures.send_again(WorkerId(1), parts.out);
  CHECK(parts.out.told<msg::Stop>() == Workers{1});
  CHECK(parts.departures.stopped(WorkerId(1), {{}, 1}, parts.out) == After::left);
  CHECK(parts.out.happened<event::Left>() == Workers{1});
  CHECK(parts.member(1).state == State::gone);
  CHECK_FALSE(parts.departures.leave(WorkerId(1), parts.out));  // it has left already
}

TEST_CASE("a member stops with the run") {
  SchedulerParts parts(workers_plan(2));
  parts.runs({0, 1});
  parts.run.stop(msg::RunEnded::Reason::interrupted, "", parts.out);
  CHECK(parts.departures.stopped(WorkerId(1), {{}, 1}, parts.out) == After::stopped);
  CHECK(parts.member(1).state == State::stopped);
  parts.out.forget();
  for (const std::uint32_t worker : {0u, 1u})
    parts.departures.send_again(WorkerId(worker), parts.out);
  CHECK(parts.out.told<msg::Stop>() == Workers{0});
}

TEST_CASE("a stage that stops without having heard its Start is reported") {
  Plan plan = workers_plan(2);
  plan.pipeline.stages = 2;
  SchedulerParts parts(plan);
  parts.runs({0});
  parts.run.stop(msg::RunEnded::Reason::interrupted, "", parts.out);
  CHECK(parts.departures.stopped(WorkerId(1), {{}, 0}, parts.out) == After::start_lost);
  CHECK(parts.departures.stopped(WorkerId(1), {{}, 1}, parts.out) == After::waits);  // for stage 0
}

}  // namespace leeway::test
