// Roster: members by state, and views.
#include "actors/scheduler/roster.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

using State = Member::State;

std::vector<WorkerId> ids(const Workers& workers) {
  std::vector<WorkerId> ids;
  for (const std::uint32_t worker : workers) ids.emplace_back(worker);
  return ids;
}

}  // namespace

TEST_CASE("the roster lists the members of some states in ascending order") {
  Roster roster(*job_of(workers_plan(4)), {});
  for (const std::uint32_t lead : {3u, 0u}) roster.enter(WorkerId(lead), State::running);
  roster.enter(WorkerId(1), State::idle);
  CHECK(roster.in({State::running, State::idle}) == ids({0, 1, 3}));
  CHECK(roster.in({State::absent}) == ids({2}));
  CHECK(roster.count({State::running, State::absent}) == 3);
  roster.enter(WorkerId(3), State::gone);
  CHECK(roster.in({State::running}) == ids({0}));
}

TEST_CASE("running members and those being admitted take part") {
  Roster roster(*job_of(workers_plan(3)), {});
  CHECK(roster.taking_part().empty());
  roster.enter(WorkerId(2), State::admitting);
  roster.enter(WorkerId(0), State::running);
  CHECK(roster.taking_part() == ids({0, 2}));
  roster.enter(WorkerId(2), State::running);
  CHECK(roster.taking_part() == ids({0, 2}));
  roster.enter(WorkerId(0), State::fencing);
  CHECK(roster.taking_part() == ids({2}));
}

TEST_CASE("a member with a worker that joins later starts in state gone") {
  Plan plan = workers_plan(4);
  plan.pipeline.stages = 2;
  const Roster roster(*job_of(plan), {WorkerId(3)});
  CHECK(roster.at(WorkerId(0)).state == State::absent);
  CHECK(roster.at(WorkerId(2)).state == State::gone);
  CHECK_FALSE(roster.stage_of(WorkerId(2)).ended);
  CHECK(roster.stage_of(WorkerId(3)).ended);
  CHECK(roster.stage_of(WorkerId(3)).nonce == JoinNonce());
}

TEST_CASE("each view has the next number") {
  Roster roster(*job_of(workers_plan(1)), {});
  const View first = roster.next_view();
  CHECK(roster.view() == first);
  CHECK(roster.next_view().value() == first.value() + 1);
}

}  // namespace leeway::test
