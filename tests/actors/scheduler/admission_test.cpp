// Admission: when members start, and at which iteration.
#include "actors/scheduler/admission.hpp"

#include <catch2/catch.hpp>

#include "tests/support/scheduler_parts.hpp"

namespace leeway::test {
namespace {

using State = Member::State;

/// Answers all Admits for their shards, with iteration + shard index * `apart`. True if a member is
/// ready.
bool answer(SchedulerParts& parts, std::int64_t apart = 0) {
  bool ready = false;
  for (const auto& asked : parts.out.take<msg::Admit>())
    ready |= parts.admission.admitted(
        {asked.body.worker, asked.body.iteration + apart * asked.to.index, asked.body.view},
        parts.out);
  return ready;
}

}  // namespace

TEST_CASE("the first members are admitted when all have joined, and start together") {
  SchedulerParts parts(workers_plan(2));
  CHECK(parts.admission.join(WorkerId(1), first_nonce(1), parts.out));
  CHECK(parts.out.has_sent_nothing());
  CHECK(parts.admission.join(WorkerId(0), first_nonce(1), parts.out));
  CHECK(parts.run.is_training());
  const auto asked = parts.out.take<msg::Admit>();
  REQUIRE(asked.size() == 2 * 2);
  for (const auto& one : asked) {
    if (one.body.worker == WorkerId(1)) continue;
    parts.admission.admitted({WorkerId(0), Iteration(0), one.body.view}, parts.out);
  }
  parts.admission.start_ready(parts.out);
  CHECK(parts.out.has_sent_nothing());  // worker 1 is not known to the shards yet
  for (const auto& one : asked) {
    if (one.body.worker == WorkerId(0)) continue;
    parts.admission.admitted({WorkerId(1), Iteration(0), one.body.view}, parts.out);
  }
  parts.admission.start_ready(parts.out);
  CHECK(parts.out.receivers_of<msg::Start>() == Workers{0, 1});
  CHECK(parts.member(0).state == State::running);
}

TEST_CASE("a later member is proposed the least clock of the running members") {
  SchedulerParts parts(workers_plan(3));
  parts.set_running({0, 1});
  parts.member(0).clock = Clock(7);
  parts.member(1).clock = Clock(5);
  parts.admission.admit(WorkerId(2), parts.out);
  CHECK(parts.out.take<msg::Admit>().at(0).body.iteration == Iteration(5));
}

TEST_CASE("by rounds, a later member is proposed the first round without shares") {
  SchedulerParts parts(workers_plan(3, plan::Bsp{}));
  parts.set_running({0, 1});
  for (const int round : {0, 1}) REQUIRE(parts.request_lease(0, Iteration(round)));
  parts.admission.admit(WorkerId(2), parts.out);
  CHECK(parts.out.take<msg::Admit>().at(0).body.iteration == Iteration(2));
}

TEST_CASE("a member is raised to the largest iteration that a shard answers") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0});
  parts.admission.admit(WorkerId(1), parts.out);
  REQUIRE(answer(parts, 4));
  const auto raises = parts.out.take<msg::Raise>();
  REQUIRE(raises.size() == 2);
  CHECK(raises[0].body.iteration == Iteration(4));
  CHECK(raises[0].body.view == parts.roster.view());
  parts.admission.start_ready(parts.out);
  CHECK(parts.out.take<msg::Start>().at(0).body.iteration == Iteration(4));
}

TEST_CASE("answers to an earlier Admit are ignored") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0});
  parts.admission.admit(WorkerId(1), parts.out);
  const auto earlier = parts.out.take<msg::Admit>();
  parts.admission.admit(WorkerId(1), parts.out);
  for (const auto& asked : earlier)
    CHECK_FALSE(parts.admission.admitted({WorkerId(1), {}, asked.body.view}, parts.out));
  CHECK(answer(parts));
}

TEST_CASE("a running worker may join again once its session is being fenced") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  CHECK(parts.admission.join(WorkerId(1), first_nonce(1), parts.out));  // a repeat
  CHECK_FALSE(parts.admission.join(WorkerId(1), first_nonce(2), parts.out));
  CHECK(parts.out.has_sent_nothing());
  parts.roster.enter(WorkerId(1), State::fencing);
  CHECK(parts.admission.join(WorkerId(1), first_nonce(2), parts.out));
  CHECK(parts.roster.stage_of(WorkerId(1)).rejoins == first_nonce(2));
}

TEST_CASE("a worker that joins after the end of the run gets a Stop") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0});
  parts.roster.enter(WorkerId(1), State::gone);
  parts.run.stop(msg::RunEnded::Reason::finished, "", parts.out);
  parts.out.forget();
  CHECK(parts.admission.join(WorkerId(1), first_nonce(2), parts.out));
  CHECK(parts.out.receivers_of<msg::Stop>() == Workers{1});
  CHECK(parts.member(1).state == State::gone);
}

TEST_CASE("Start is sent again to a worker that has not sent a message since") {
  SchedulerParts parts(workers_plan(2));
  parts.set_running({0, 1});
  parts.roster.stage_of(WorkerId(1)).heard = false;
  for (const std::uint32_t worker : {0u, 1u})
    parts.admission.send_again(WorkerId(worker), parts.out);
  CHECK(parts.out.receivers_of<msg::Start>() == Workers{1});
}

}  // namespace leeway::test
