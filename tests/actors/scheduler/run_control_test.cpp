// RunControl: phases, reports, and the end of a run.
#include "actors/scheduler/run_control.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

using State = Member::State;
using Reason = msg::RunEnded::Reason;

}  // namespace

TEST_CASE("a run ends when it stops and all members have stopped or are gone") {
  SchedulerParts parts(workers_plan(3));
  parts.set_running({0, 1});
  parts.roster.enter(WorkerId(2), State::gone);
  parts.run.stop(Reason::interrupted, "interrupted", parts.out);
  parts.run.stop(Reason::finished, "too late", parts.out);
  CHECK(parts.out.receivers_of<msg::Stop>() == Workers{0, 1});
  parts.roster.enter(WorkerId(0), State::stopped);
  parts.run.finish_if_done(parts.out);
  CHECK(parts.out.has_sent_nothing());
  parts.roster.enter(WorkerId(1), State::stopped);
  parts.run.count_partial_pushes(2);
  parts.run.count_dropped_pushes(3);
  parts.run.finish_if_done(parts.out);
  const auto ended = parts.out.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].to == kMonitor);
  CHECK(ended[0].body.reason == Reason::interrupted);
  CHECK(ended[0].body.text == "interrupted");
  CHECK(ended[0].body.partial_pushes == 2);
  CHECK(ended[0].body.dropped_pushes == 3);
  CHECK(parts.out.take<msg::Finish>().size() == 2);  // to each shard
}

TEST_CASE("a run that stops or is interrupted ends the grace window of its rounds") {
  for (const bool grace : {true, false}) {
    SchedulerParts parts(workers_plan(3, plan::Quorum{2, grace ? 6e4 : 0}));
    parts.set_running({0, 1, 2});
    parts.run.stop(Reason::finished, "the time limit was reached", parts.out);
    const auto ended = parts.out.take<msg::EndGrace>();
    REQUIRE(ended.size() == (grace ? 1 : 0));
    if (grace) CHECK(ended[0].to == address_of(ShardId(0)));
  }
}

TEST_CASE("a failure of a run that stops replaces the reason of its end") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  parts.run.stop(Reason::finished, "the time limit was reached", parts.out);
  parts.run.stop_without_checkpoint(Reason::failed, "the loss became NaN", parts.out);
  for (const std::uint32_t worker : {0u, 1u}) parts.roster.enter(WorkerId(worker), State::stopped);
  parts.run.finish_if_done(parts.out);
  const auto ended = parts.out.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].body.reason == Reason::failed);
  CHECK(ended[0].body.text == "the loss became NaN");
}

TEST_CASE("a run stops when all samples are trained, but not while a member is fenced") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  Iteration next;
  while (parts.request_lease(0, next))
    next = next + parts.out.take<msg::Lease>().at(0).body.iterations();
  parts.run.finish_if_done(parts.out);
  CHECK(parts.run.is_training());
  parts.leases.confirm(WorkerId(0), Clock(next.value()), parts.out);
  parts.roster.enter(WorkerId(1), State::fencing);
  parts.run.finish_if_done(parts.out);
  CHECK(parts.run.is_training());
  parts.roster.enter(WorkerId(1), State::gone);
  parts.run.finish_if_done(parts.out);
  CHECK(parts.run.is_over());
}

TEST_CASE("a run fails when no member is left, unless the plan restarts one") {
  Plan plan = workers_plan(1);
  plan.faults = {{address_of(WorkerId(0)), 1.0, 0, plan::Crash{0.5}}};
  SchedulerParts parts(plan);
  parts.set_running({0});
  parts.roster.enter(WorkerId(0), State::gone);
  auto& stage = parts.roster.stage_of(WorkerId(0));
  stage.ended = true;
  stage.end_reason.kind = EndReason::Kind::planned_crash;
  parts.run.fail_if_alone(WorkerId(0), parts.out);
  CHECK(parts.run.is_training());
  stage.end_reason.kind = EndReason::Kind::failed;
  parts.member(0).end_reason = "boom";
  parts.run.fail_if_alone(WorkerId(0), parts.out);
  const auto ended = parts.out.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].body.reason == Reason::failed);
  CHECK(ended[0].body.text == "no worker is left; the last to end was worker 0: boom");
}

TEST_CASE("a run without a shard ends at once") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  parts.run.fail_at_once("shard 1 ended", parts.out);
  CHECK(parts.run.phase() == RunControl::Phase::ended);
  CHECK(parts.out.take<msg::RunEnded>().at(0).body.text == "shard 1 ended");
}

TEST_CASE("reports count the workers of all members that take part or wait for admission") {
  SchedulerParts parts(workers_plan(4));
  parts.set_running({0});
  parts.roster.enter(WorkerId(1), State::idle);
  parts.roster.enter(WorkerId(2), State::fencing);
  parts.run.report(parts.out);
  CHECK(parts.out.take<msg::SchedulerReport>().at(0).body.live_workers == 2);
}

}  // namespace leeway::test
