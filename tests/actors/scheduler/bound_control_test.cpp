// BoundControl: moves an adaptive staleness bound.
#include "actors/scheduler/bound_control.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

/// Worker 0 has waited for half of its time, worker 1 has not waited.
void report(SchedulerParts& parts, std::uint32_t lead) {
  parts.bound.measured(WorkerId(lead),
                       {.iterations = 10,
                        .waited = milliseconds(lead == 0 ? 100 : 0),
                        .computed = milliseconds(100)},
                       parts.out);
}

}  // namespace

TEST_CASE("the bound moves when all running members have reported iterations") {
  SchedulerParts parts(workers_plan(3, plan::Adaptive{1, 6}));
  parts.set_running({0, 1});
  CHECK(parts.bound.bound() == 1);
  report(parts, 0);
  report(parts, 0);
  CHECK(parts.out.has_sent_nothing());
  report(parts, 1);
  const auto bounds = parts.out.take<msg::Bound>();
  REQUIRE(bounds.size() == 2);  // one to each shard
  CHECK(bounds[0].body.staleness > 1);
  CHECK(parts.bound.bound() == bounds[0].body.staleness);
  const auto moved = parts.out.take<msg::BoundMoved>();
  REQUIRE(moved.size() == 1);
  CHECK(moved[0].to == kMonitor);
  CHECK(moved[0].body.before == 1);
  CHECK(moved[0].body.staleness == bounds[0].body.staleness);
  CHECK(moved[0].body.lost_percent > 10);
  // The next move needs another report of each member.
  report(parts, 1);
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("a new bound holds from the iteration of the fastest member") {
  SchedulerParts parts(workers_plan(2, plan::Adaptive{1, 6}));
  parts.set_running({0, 1});
  parts.member(0).clock = Clock(7);
  parts.member(1).clock = Clock(9);
  report(parts, 0);
  report(parts, 1);
  CHECK(parts.out.take<msg::Bound>().at(0).body.from == Iteration(9));
}

TEST_CASE("when a member returns, its reports from before are ignored") {
  SchedulerParts parts(workers_plan(2, plan::Adaptive{1, 6}));
  parts.set_running({0, 1});
  report(parts, 0);
  parts.bound.forget(WorkerId(0));
  report(parts, 1);
  CHECK(parts.out.has_sent_nothing());
}

TEST_CASE("a fixed bound does not move, and is reported as 0") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  for (const std::uint32_t lead : {0u, 1u}) report(parts, lead);
  CHECK(parts.out.has_sent_nothing());
  CHECK(parts.bound.bound() == 0);
}

TEST_CASE("reports with huge values do not overflow") {
  SchedulerParts parts(workers_plan(1, plan::Adaptive{1, 6}));
  parts.set_running({0});
  const Duration most{std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < 3; ++i)
    parts.bound.measured(WorkerId(0), {.iterations = 1, .waited = most, .computed = most},
                         parts.out);
  CHECK(parts.bound.bound() <= 6);
}

}  // namespace leeway::test
