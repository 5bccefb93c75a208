// The scheduler with pipelines of several stages: idling, leaving, stopping, and repeated messages.
#include <catch2/catch.hpp>
#include <limits>

#include "tests/support/scheduler_stand.hpp"

namespace leeway::test {

TEST_CASE("a pipeline is idle when all its stages are, after the same Start") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  const Iteration end = stand.trains_all(2);
  const msg::Idle idle{Clock(end.value()), 1};
  stand.hears(3, idle);
  stand.hears(2, msg::Idle{idle.clock, 2});  // names a Start that was never sent
  CHECK(stand.pairs<msg::Remove>().empty());
  stand.hears(2, idle);
  CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(2));
  stand.hears(2, idle);
  CHECK(stand.says_nothing());
}

TEST_CASE("an idle pipeline is admitted again when samples come back, with the next start number") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  const Iteration end = stand.trains_all(2);
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Idle{Clock(end.value()), 1});
  stand.ends(0);
  stand.forget();
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.hears(address_of(shard), msg::Fenced{worker, {}, {}});
  const auto asked = stand.take<msg::Admit>();
  CHECK(asked.size() == stand.pairs_of(2).size());
  for (const auto& one : asked)
    stand.hears(one.to, msg::Admitted{one.body.worker, end, one.body.view});
  for (const auto& start : stand.take<msg::Start>()) CHECK(start.body.number == 2);
  // Idle for the earlier Start neither makes it idle nor shows that it has heard this Start.
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Idle{Clock(end.value()), 1});
  stand.reconnects(3);
  CHECK(stand.told<msg::Start>() == Workers{3});
  stand.hears(3, msg::Idle{Clock(end.value()), 2});
  CHECK(stand.take<msg::Remove>().size() == stand.pairs_of(0).size());
  CHECK(stand.leases(2, end, Clock(end.value()))->begin == 0);
}

TEST_CASE("when a worker is asked to leave, its pipeline has left once all stages have stopped") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  stand.hears(kHost, msg::Leave{WorkerId(1)});
  CHECK(stand.told<msg::Stop>() == Workers{0, 1});
  stand.hears(0, msg::Stopped{Clock(2), 1});
  CHECK(stand.says_nothing());
  CHECK(stand.happened<event::Left>().empty());
  stand.hears(1, msg::Stopped{Clock(2), 1});
  CHECK(stand.happened<event::Left>() ==
        Workers{0, 1});  // a host waits for the worker that it named
  CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(0));
  CHECK(stand.take<msg::Fence>().empty());
  const auto out = stand.take<msg::Evicted>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].body.reason == "it was asked to leave");
  CHECK_FALSE(out[0].body.partial);
  CHECK(stand.events<event::Trained>().at(0).end == 2 * 2);
  // The workers may join again in new lives, once all of them have.
  stand.joins(1, kSecondLife);
  stand.joins(0, kNext);
  CHECK(stand.told<msg::Stop>() == Workers{0});
  CHECK(stand.says_nothing());
  stand.joins(0, kSecondLife);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  // Their earlier Stopped does not count when they leave again.
  stand.hears(kHost, msg::Leave{WorkerId(1)});
  stand.forget();
  stand.hears(0, msg::Stopped{{}, 1}, kSecondLife);
  CHECK(stand.says_nothing());
}

TEST_CASE("a pipeline that gets a Stop before its Start is not started") {
  for (const bool leaves : {true, false}) {
    INFO((leaves ? "asked to leave" : "the run is stopped"));
    SchedulerStand stand(piped_plan());
    stand.begins();
    stand.loses_the_first();
    stand.joins(0, kNext);
    stand.joins(1, kSecondLife);
    const auto asked = stand.take<msg::Admit>();
    CHECK(asked.size() == stand.pairs_of(0).size());
    if (leaves)
      stand.hears(kHost, msg::Leave{WorkerId(0)});
    else
      stand.hears(kHost, msg::Interrupt{});
    CHECK(stand.told<msg::Stop>() == (leaves ? Workers{0, 1} : Workers{0, 1, 2, 3}));
    stand.hears(0, msg::Stopped{{}, 1}, kNext);  // it would ignore a Start
    for (const auto& one : asked)
      stand.hears(one.to, msg::Admitted{one.body.worker, {}, one.body.view});
    CHECK(stand.told<msg::Start>().empty());
    stand.reconnects(1);  // it has not heard the Stop
    CHECK(stand.told<msg::Start>().empty());
    CHECK(stand.told<msg::Stop>() == Workers{1});
    stand.hears(1, msg::Stopped{{}, 1}, kSecondLife);
    CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(0));
    if (!leaves)
      for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Stopped{{}, 1});
    CHECK(stand.take<msg::RunEnded>().size() == (leaves ? 0 : 1));
  }
}

TEST_CASE("an idle pipeline that leaves is not admitted again") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  const Iteration end = stand.trains_all(2);
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Idle{Clock(end.value()), 1});
  stand.hears(kHost, msg::Leave{WorkerId(2)});
  stand.loses_the_first();
  CHECK(stand.take<msg::Admit>().empty());
}

TEST_CASE("answers to an Admit of an earlier incarnation do not count") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.loses_the_first();
  stand.joins(0, kNext);
  stand.joins(1, kSecondLife);
  const auto earlier = stand.take<msg::Admit>();
  stand.hears(kHost, msg::Leave{WorkerId(0)});
  stand.hears(0, msg::Stopped{{}, 1}, kNext);
  stand.hears(1, msg::Stopped{{}, 1}, kSecondLife);
  stand.joins(0, kSecondLife);
  stand.joins(1, first_incarnation(3));
  const auto asked = stand.take<msg::Admit>();
  REQUIRE(asked.size() == earlier.size());
  for (const auto& one : earlier)
    stand.hears(one.to, msg::Admitted{one.body.worker, {}, one.body.view});
  CHECK(stand.told<msg::Start>().empty());
  for (const auto& one : asked)
    stand.hears(one.to, msg::Admitted{one.body.worker, Iteration(7), one.body.view});
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  for (const auto& start : starts) CHECK(start.body.iteration == Iteration(7));
}

TEST_CASE("a Stopped without a Stop changes nothing") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.hears(1, msg::Stopped{{}, 1});
  stand.hears(kHost, msg::Leave{WorkerId(0)});
  stand.forget();
  stand.hears(0, msg::Stopped{{}, 1});
  CHECK(stand.says_nothing());
}

TEST_CASE("the run fails when the last pipeline leaves") {
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  stand.hears(kHost, msg::Leave{WorkerId(0)});
  for (const std::uint32_t worker : {0u, 1u}) stand.hears(worker, msg::Stopped{{}, 1});
  CHECK(stand.end() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: it was "
        "asked to leave");
}

TEST_CASE("a worker may be asked to leave while its pipeline is gone") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.loses_the_first();
  stand.joins(0, kNext);
  stand.hears(kHost, msg::Leave{WorkerId(0)});
  CHECK(stand.told<msg::Stop>() == Workers{0});
  CHECK(stand.happened<event::Left>() == Workers{0, 1});
  stand.hears(0, msg::Stopped{{}, 1}, kNext);
  stand.forget();
  stand.joins(1, kSecondLife);  // one stage is no pipeline
  CHECK(stand.says_nothing());
  stand.hears(kHost, msg::Interrupt{});
  CHECK(stand.told<msg::Stop>() == Workers{1, 2, 3});
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Stopped{{}, 1});
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("a pipeline whose stage ends while it leaves has left") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.hears(kHost, msg::Leave{WorkerId(0)});
  stand.hears(0, msg::Stopped{{}, 1});
  stand.ends(1);
  stand.answer_fences();
  CHECK(stand.happened<event::Left>() == Workers{0, 1});
}

TEST_CASE("a lease that an idle worker has not read goes back") {
  // It asked twice over a connection that was made again. The first answer was that there are no
  // samples; then samples came back, and the second answer was a lease.
  Plan plan = tiny_plan();
  plan.workers = 2;
  plan.lease_size = static_cast<std::uint32_t>(plan.batch);
  plan.stop.epochs = 1;
  SchedulerStand stand(plan);
  stand.begins();
  const auto lost = stand.leases(1, {}, {});
  REQUIRE(lost);
  const Iteration next = stand.trains_all(0);
  const Clock trained(next.value());
  stand.ends(1);
  stand.answer_fences();
  const auto unseen = stand.leases(0, next, trained);
  REQUIRE(unseen);
  CHECK(unseen->begin == lost->begin);
  stand.events<event::LeaseReturned>();
  stand.hears(0, msg::Idle{trained, 1});
  const auto returned = stand.events<event::LeaseReturned>();
  REQUIRE(returned.size() == 1);
  CHECK((returned[0].begin == lost->begin && returned[0].end == lost->end));
  CHECK(stand.end().empty());
  // It is admitted at a later iteration, and gets a new lease of these samples.
  const Iteration later = next + 3;
  stand.answer_admits(later);
  REQUIRE(stand.told<msg::Start>() == Workers{0});
  const auto again = stand.leases(0, later, Clock(later.value()));
  REQUIRE(again);
  CHECK((again->begin == lost->begin && again->end == lost->end));
  stand.hears(0, msg::Idle{Clock(later.value() + 1), 2});
  CHECK(stand.told<msg::Stop>() == Workers{0});  // all is trained
}

TEST_CASE("a stage that stops before it has heard its Start ends its pipeline") {
  // The Start was lost with a connection, the Stop was not. Other stages may have begun, and would
  // wait for this one.
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  stand.hears(kHost, msg::Interrupt{});
  CHECK(stand.told<msg::Stop>() == Workers{0, 1});
  stand.hears(1, msg::Stopped{});
  CHECK(stand.happened<event::Evicted>() == Workers{0});
  CHECK(stand.told<msg::Refused>() == Workers{0, 1});
  stand.answer_fences();
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("a run is stopped while a pipeline is broken") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.ends(1);
  stand.forget();
  stand.hears(kHost, msg::Interrupt{});
  CHECK(stand.told<msg::Stop>() == Workers{2, 3});
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Stopped{{}, 1});
  stand.joins(0, kNext);
  CHECK(stand.take<msg::RunEnded>().empty());  // the shards have not answered the Fence
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.hears(address_of(shard), msg::Fenced{worker, {}, {}});
  CHECK(stand.told<msg::Stop>() == Workers{0});
  CHECK(stand.take<msg::RunEnded>().at(0).body.reason == msg::RunEnded::Reason::interrupted);
}

TEST_CASE("a pipeline that stops counts the iterations that all its stages have") {
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {})->iterations() >= 3);
  stand.hears(kHost, msg::Interrupt{});
  stand.hears(0, msg::Stopped{Clock(3), 1});
  CHECK(stand.take<msg::RunEnded>().empty());
  stand.hears(1, msg::Stopped{Clock(2), 1});
  CHECK(stand.take<msg::RunEnded>().at(0).body.samples_trained == 2 * 2);
}

TEST_CASE("a run may be stopped before all stages have joined") {
  SchedulerStand stand(piped_plan(2));
  stand.joins(1);
  stand.hears(kHost, msg::Interrupt{});
  CHECK(stand.told<msg::Stop>() == Workers{0, 1});
  stand.hears(1, msg::Stopped{{}, 1});
  stand.joins(0);
  CHECK(stand.told<msg::Stop>() == Workers{0});
  CHECK(stand.says_nothing());
  stand.hears(0, msg::Stopped{{}, 1});
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("only the first stage asks for leases") {
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  stand.hears(1, msg::WantLease{});
  CHECK(stand.take<msg::Lease>().empty());
  const auto refused = stand.take<msg::Refused>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].to == address_of(WorkerId(1)));
  CHECK(refused[0].body.reason == msg::Refused::Reason::malformed);
  CHECK(refused[0].body.text.find("worker 1 is stage 1 of its pipeline") != std::string::npos);
}

TEST_CASE("messages that were lost with a link are sent again to their stage") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  REQUIRE(stand.leases(0, Iteration(0), {}));
  stand.reconnects(0);  // has sent something since its Start
  CHECK(stand.says_nothing());
  stand.reconnects(1);
  CHECK(stand.told<msg::Start>() == Workers{1});
  stand.hears(1, msg::Idle{{}, 1});
  stand.reconnects(1);
  CHECK(stand.says_nothing());
  // A stage that sends nothing by itself would never be refused.
  stand.ends(0);
  stand.forget();
  stand.reconnects(1);
  CHECK(stand.told<msg::Refused>() == Workers{1});
  stand.reconnects(0);  // it may live, and only seem dead
  CHECK(stand.told<msg::Refused>() == Workers{0});
  stand.joins(1, kNext);
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.hears(address_of(shard), msg::Fenced{worker, {}, {}});
  stand.forget();
  stand.reconnects(1);
  CHECK(stand.says_nothing());
  stand.hears(kHost, msg::Interrupt{});
  CHECK(stand.told<msg::Stop>() == Workers{1, 2, 3});
  for (const std::uint32_t worker : {1u, 3u}) stand.reconnects(worker);
  CHECK(stand.told<msg::Stop>() == Workers{1, 3});
}

TEST_CASE("a loss that is not finite, reported by the last stage, ends the run") {
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  stand.hears(1, msg::Diverged{Iteration(4), std::numeric_limits<double>::infinity(), "the loss"});
  CHECK(stand.told<msg::Stop>() == Workers{0, 1});
  for (const std::uint32_t worker : {0u, 1u}) stand.hears(worker, msg::Stopped{{}, 1});
  CHECK(stand.end().find(
            "pipeline 0 stage 1 (worker 1): the loss became infinite in iteration 4") == 0);
}

TEST_CASE("all stages are watched, and counted in reports") {
  SchedulerStand stand(piped_plan(6, 3));
  for (std::uint32_t worker = 0; worker < 6; ++worker) CHECK(stand.watched(worker) == 1);
  stand.begins();
  stand.ends(4);
  stand.forget();
  stand.ticks();
  CHECK(stand.take<msg::SchedulerReport>().at(0).body.live_workers == 3);
}

TEST_CASE("the description of a hanging run names each stage") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.loses_the_first();
  stand.joins(0, kNext);
  stand.hears(3, msg::Idle{{}, 1});
  CHECK(stand.describe() ==
        "scheduler training, worker 0 gone (stages waits, ended), worker 2 running (stages there, "
        "idle)");
}

}  // namespace leeway::test
