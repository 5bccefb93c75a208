// Evictions and Departures: the removal of members from the run.
#include "actors/scheduler/departures.hpp"

#include <catch2/catch.hpp>

#include "actors/scheduler/evictions.hpp"
#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

using State = Member::State;
using After = Departures::AfterStopped;

}  // namespace

TEST_CASE("an evicted member is fenced at each shard, and the last answer settles its pushes") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  CHECK(parts.evictions.evict(WorkerId(1), "boom", false, parts.out));
  CHECK_FALSE(parts.evictions.evict(WorkerId(1), "boom", false, parts.out));  // already evicted
  const auto fences = parts.out.take<msg::Fence>();
  REQUIRE(fences.size() == 2);
  CHECK(parts.out.receivers_of<msg::Refused>() == Workers{1});
  CHECK(parts.out.happened<event::Evicted>() == Workers{1});
  const msg::Fenced none{WorkerId(1), {}, {}};
  CHECK_FALSE(parts.evictions.fenced(ShardId(0), {WorkerId(1), Clock(3), {}}));
  CHECK_FALSE(parts.evictions.fenced(ShardId(0), none));                   // a repeat
  CHECK_FALSE(parts.evictions.fenced(ShardId(1), {WorkerId(0), {}, {}}));  // not evicted
  const auto partial = parts.evictions.fenced(ShardId(1), {WorkerId(1), Clock(2), {}});
  REQUIRE(partial);
  CHECK(partial->whole() == Clock(2));
  CHECK(partial->count() == 1);
}

TEST_CASE("part_with() removes a member at the shards and reports the reason to the monitor") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  REQUIRE(parts.request_lease(1, Iteration(0)));
  const auto lease = parts.out.take<msg::Lease>().at(0).body;
  parts.evictions.evict(WorkerId(1), "boom", false, parts.out);
  parts.out.forget();
  parts.departures.part_with(WorkerId(1), {}, parts.out);
  CHECK(parts.member(1).state == State::gone);
  CHECK(parts.out.pairs<msg::Remove>().size() == 2);
  const auto evicted = parts.out.take<msg::Evicted>();
  REQUIRE(evicted.size() == 1);
  CHECK(evicted[0].body.reason == "boom");
  CHECK(evicted[0].body.returned_samples == static_cast<std::uint64_t>(lease.end - lease.begin));
}

TEST_CASE("a running member becomes idle, once") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  CHECK(parts.departures.idle(WorkerId(1), {}, parts.out));
  CHECK_FALSE(parts.departures.idle(WorkerId(1), {}, parts.out));
  CHECK(parts.member(1).state == State::idle);
  CHECK(parts.out.pairs<msg::Remove>().size() == 2);
}

TEST_CASE("a member that gets a Leave has left when it has stopped") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  CHECK(parts.departures.stopped(WorkerId(1), Session(1), {}, parts.out) ==
        After::waits);  // without a Leave
  CHECK(parts.departures.leave(WorkerId(1), parts.out));
  CHECK(parts.out.receivers_of<msg::Stop>() == Workers{1});
  CHECK(parts.out.events<event::Left>().empty());
  parts.departures.send_again(WorkerId(1), parts.out);
  CHECK(parts.out.receivers_of<msg::Stop>() == Workers{1});
  CHECK(parts.departures.stopped(WorkerId(1), Session(1), {}, parts.out) == After::left);
  CHECK(parts.out.happened<event::Left>() == Workers{1});
  CHECK(parts.member(1).state == State::gone);
  CHECK_FALSE(parts.departures.leave(WorkerId(1), parts.out));  // already left
}

TEST_CASE("a member stops with the run") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  parts.run.stop(msg::RunEnded::Reason::interrupted, "", parts.out);
  CHECK(parts.departures.stopped(WorkerId(1), Session(1), {}, parts.out) == After::stopped);
  CHECK(parts.member(1).state == State::stopped);
  parts.out.forget();
  for (const std::uint32_t worker : {0u, 1u})
    parts.departures.send_again(WorkerId(worker), parts.out);
  CHECK(parts.out.receivers_of<msg::Stop>() == Workers{0});
}

TEST_CASE("samples that a member has not trained when it stops with the run are not lost") {
  Plan plan = workers_plan(2);
  plan.lease_size = 8;
  SchedulerParts parts(plan);
  parts.set_running({0, 1});
  REQUIRE(parts.request_lease(1, Iteration(0)));  // four iterations
  parts.run.stop(msg::RunEnded::Reason::finished, "the time limit was reached", parts.out);
  CHECK(parts.departures.stopped(WorkerId(1), Session(1), {Clock(3)}, parts.out) == After::stopped);
  CHECK(parts.leases.book().samples_trained() == 6);
  CHECK(parts.leases.book().samples_leased() == 6);
  const auto returned = parts.out.events<event::LeaseReturned>();
  REQUIRE(returned.size() == 1);
  CHECK(returned[0].begin == 6);
  CHECK(returned[0].end == 8);
}

TEST_CASE("a Stopped of a stage that has not received its Start is reported as start_lost") {
  Plan plan = workers_plan(2);
  plan.pipeline.stages = 2;
  SchedulerParts parts(plan);
  parts.set_running({0});
  parts.run.stop(msg::RunEnded::Reason::interrupted, "", parts.out);
  CHECK(parts.departures.stopped(WorkerId(1), Session(0), {}, parts.out) == After::start_lost);
  CHECK(parts.departures.stopped(WorkerId(1), Session(1), {}, parts.out) ==
        After::waits);  // for stage 0
}

}  // namespace leeway::test
