// The scheduler with pipelines of several stages: idling, leaving, stopping, and repeated messages.
#include <catch2/catch.hpp>
#include <limits>

#include "tests/support/scheduler_stand.hpp"

namespace leeway::test {
namespace {

/// Starts all: pipeline 0 has a lease, and the second one has trained the rest and is idle. Returns
/// the second one's next iteration.
Iteration idle_second_pipeline(SchedulerStand& stand) {
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  const Iteration end = stand.train_all(2);
  for (const std::uint32_t worker : {2u, 3u}) stand.deliver(worker, msg::Idle{Clock(end.value())});
  return end;
}

}  // namespace

TEST_CASE("a pipeline is idle when all its stages are idle in the same session") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  const Iteration end = stand.train_all(2);
  const msg::Idle idle{Clock(end.value())};
  stand.deliver(3, idle);
  stand.deliver(2, idle, Session(2));  // which was never begun
  CHECK(stand.pairs<msg::Remove>().empty());
  stand.deliver(2, idle);
  CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(2));
  stand.deliver(2, idle);
  CHECK(stand.has_sent_nothing());
}

TEST_CASE("an idle pipeline is admitted again when samples come back, in the next session") {
  SchedulerStand stand(piped_plan());
  const Iteration end = idle_second_pipeline(stand);
  stand.end_worker(0);
  stand.forget();
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.deliver(address_of(shard), msg::Fenced{worker, {}, {}});
  const auto asked = stand.take<msg::Admit>();
  CHECK(asked.size() == stand.pairs_of(2).size());
  for (const auto& one : asked)
    stand.deliver(one.to, msg::Admitted{one.body.worker, end, one.body.view});
  for (const auto& start : stand.take<msg::Start>()) CHECK(start.session == Session(2));
  // An Idle of the earlier session neither makes the pipeline idle nor confirms this Start.
  for (const std::uint32_t worker : {2u, 3u})
    stand.deliver(worker, msg::Idle{Clock(end.value())}, Session(1));
  stand.reconnect(3);
  CHECK(stand.receivers_of<msg::Start>() == Workers{3});
  stand.deliver(3, msg::Idle{Clock(end.value())});
  CHECK(stand.take<msg::Remove>().size() == stand.pairs_of(0).size());
  CHECK(stand.request_lease(2, end, Clock(end.value()))->begin == 0);
}

TEST_CASE("an idle worker that is evicted while it is admitted again is refused, and joins again") {
  SchedulerStand stand(piped_plan(6));
  const Iteration end = idle_second_pipeline(stand);
  stand.end_worker(0);
  stand.answer_fences();
  REQUIRE(stand.pairs<msg::Admit>() == stand.pairs_of(2));
  stand.forget();
  stand.end_worker(3, {EndReason::Kind::unreachable, "no sign of life"});
  CHECK(stand.receivers_of<msg::Refused>() == Workers{3});  // it may live; worker 2 waits
  // While the others wait for it, worker 2 seems to end too.
  stand.end_worker(2, {EndReason::Kind::unreachable, "no sign of life"});
  CHECK(stand.receivers_of<msg::Refused>() == Workers{2});
  stand.answer_fences();
  stand.forget();
  // An idle worker whose refusal was lost sends Idle of its session when the link works again.
  stand.deliver(2, msg::Idle{Clock(end.value())});
  CHECK(stand.receivers_of<msg::Refused>() == Workers{2});
  stand.join(2, kRejoined);
  stand.join(3, kRejoined);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(2));
}

TEST_CASE("when a worker gets a Leave, its pipeline has left once all stages have stopped") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.deliver(kHost, msg::Leave{WorkerId(1)});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0, 1});
  stand.stop(0, Clock(2));
  CHECK(stand.has_sent_nothing());
  CHECK(stand.happened<event::Left>().empty());
  stand.stop(1, Clock(2));
  CHECK(stand.happened<event::Left>() ==
        Workers{0, 1});  // the host waits for the worker of its Leave
  CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(0));
  CHECK(stand.take<msg::Fence>().empty());
  const auto out = stand.take<msg::Evicted>();
  REQUIRE(out.size() == 1);
  CHECK(out[0].body.reason == "it was asked to leave");
  CHECK_FALSE(out[0].body.partial);
  CHECK(stand.events<event::Trained>().at(0).end == 2 * 2);
  // Restarted workers are admitted once all of them have joined.
  stand.join(1, kRestarted);
  stand.join(0, kRejoined);
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});
  CHECK(stand.has_sent_nothing());
  stand.join(0, kRestarted);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  // The earlier Stopped is ignored when they leave again.
  stand.deliver(kHost, msg::Leave{WorkerId(1)});
  stand.forget();
  stand.stop(0);
  CHECK(stand.has_sent_nothing());
}

TEST_CASE("a pipeline that gets a Stop before its Start is not started") {
  for (const bool leaves : {true, false}) {
    INFO((leaves ? "asked to leave" : "the run is stopped"));
    SchedulerStand stand(piped_plan());
    stand.start_all();
    stand.evict_first_pipeline();
    stand.join(0, kRejoined);
    stand.join(1, kRestarted);
    const auto asked = stand.take<msg::Admit>();
    CHECK(asked.size() == stand.pairs_of(0).size());
    if (leaves)
      stand.deliver(kHost, msg::Leave{WorkerId(0)});
    else
      stand.deliver(kHost, msg::Interrupt{});
    CHECK(stand.receivers_of<msg::Stop>() == (leaves ? Workers{0, 1} : Workers{0, 1, 2, 3}));
    stand.stop(0);  // worker 0 would ignore a Start
    for (const auto& one : asked)
      stand.deliver(one.to, msg::Admitted{one.body.worker, {}, one.body.view});
    CHECK(stand.receivers_of<msg::Start>().empty());
    stand.reconnect(1);  // the Stop was lost
    CHECK(stand.receivers_of<msg::Start>().empty());
    CHECK(stand.receivers_of<msg::Stop>() == Workers{1});
    stand.stop(1);
    CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(0));
    if (!leaves)
      for (const std::uint32_t worker : {2u, 3u}) stand.stop(worker);
    CHECK(stand.take<msg::RunEnded>().size() == (leaves ? 0 : 1));
  }
}

TEST_CASE("an idle pipeline that leaves is not admitted again") {
  SchedulerStand stand(piped_plan());
  idle_second_pipeline(stand);
  stand.deliver(kHost, msg::Leave{WorkerId(2)});
  stand.evict_first_pipeline();
  CHECK(stand.take<msg::Admit>().empty());
}

TEST_CASE("answers to an Admit of an earlier session are ignored") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.evict_first_pipeline();
  stand.join(0, kRejoined);
  stand.join(1, kRestarted);
  const auto earlier = stand.take<msg::Admit>();
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  stand.stop(0);
  stand.stop(1);
  stand.join(0, kRestarted);
  stand.join(1, first_nonce(3));
  const auto asked = stand.take<msg::Admit>();
  REQUIRE(asked.size() == earlier.size());
  for (const auto& one : earlier)
    stand.deliver(one.to, msg::Admitted{one.body.worker, {}, one.body.view});
  CHECK(stand.receivers_of<msg::Start>().empty());
  for (const auto& one : asked)
    stand.deliver(one.to, msg::Admitted{one.body.worker, Iteration(7), one.body.view});
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  for (const auto& start : starts) CHECK(start.body.iteration == Iteration(7));
}

TEST_CASE("a Stopped without a Stop changes nothing") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.stop(1);
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  stand.forget();
  stand.stop(0);
  CHECK(stand.has_sent_nothing());
}

TEST_CASE("the run fails when the last pipeline leaves") {
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  for (const std::uint32_t worker : {0u, 1u}) stand.stop(worker);
  CHECK(stand.end_text() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: it was "
        "asked to leave");
}

TEST_CASE("a worker may get a Leave while its pipeline is gone") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.evict_first_pipeline();
  stand.join(0, kRejoined);
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});
  CHECK(stand.happened<event::Left>() == Workers{0, 1});
  stand.stop(0);
  stand.forget();
  stand.join(1, kRestarted);  // one stage is not enough
  CHECK(stand.has_sent_nothing());
  stand.deliver(kHost, msg::Interrupt{});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{1, 2, 3});
  for (const std::uint32_t worker : {2u, 3u}) stand.stop(worker);
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("a pipeline whose stage ends while it leaves has left") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  stand.stop(0);
  stand.end_worker(1);
  stand.answer_fences();
  CHECK(stand.happened<event::Left>() == Workers{0, 1});
}

TEST_CASE("a lease that an idle worker has not read goes back") {
  // After a reconnection the worker requests again. The first answer is NoData. Then samples come
  // back, and the second answer is a lease.
  Plan plan = tiny_plan();
  plan.workers = 2;
  plan.lease_size = static_cast<std::uint32_t>(plan.batch);
  plan.stop.epochs = 1;
  SchedulerStand stand(plan);
  stand.start_all();
  const auto lost = stand.request_lease(1, {}, {});
  REQUIRE(lost);
  const Iteration next = stand.train_all(0);
  const Clock trained(next.value());
  stand.end_worker(1);
  stand.answer_fences();
  const auto unseen = stand.request_lease(0, next, trained);
  REQUIRE(unseen);
  CHECK(unseen->begin == lost->begin);
  stand.events<event::LeaseReturned>();
  stand.deliver(0, msg::Idle{trained});
  const auto returned = stand.events<event::LeaseReturned>();
  REQUIRE(returned.size() == 1);
  CHECK((returned[0].begin == lost->begin && returned[0].end == lost->end));
  CHECK(stand.end_text().empty());
  // The worker is admitted at a later iteration, and gets a new lease of these samples.
  const Iteration later = next + 3;
  stand.answer_admits(later);
  REQUIRE(stand.receivers_of<msg::Start>() == Workers{0});
  const auto again = stand.request_lease(0, later, Clock(later.value()));
  REQUIRE(again);
  CHECK((again->begin == lost->begin && again->end == lost->end));
  stand.deliver(0, msg::Idle{Clock(later.value() + 1)});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});  // all is trained
}

TEST_CASE("a stage that stops before it has received its Start ends its pipeline") {
  // The Start was lost with a connection, the Stop was not. Other stages may have started, and
  // would wait for this stage.
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.deliver(kHost, msg::Interrupt{});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0, 1});
  stand.deliver(1, msg::Stopped{{}, first_nonce(1)}, Session(0));
  CHECK(stand.happened<event::Evicted>() == Workers{0});
  CHECK(stand.receivers_of<msg::Refused>() == Workers{0, 1});
  stand.answer_fences();
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("a run is stopped while a pipeline is broken") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.forget();
  stand.deliver(kHost, msg::Interrupt{});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{2, 3});
  for (const std::uint32_t worker : {2u, 3u}) stand.stop(worker);
  stand.join(0, kRejoined);
  CHECK(stand.take<msg::RunEnded>().empty());  // the shards have not answered the Fence
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.deliver(address_of(shard), msg::Fenced{worker, {}, {}});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});
  CHECK(stand.take<msg::RunEnded>().at(0).body.reason == msg::RunEnded::Reason::interrupted);
}

TEST_CASE("a pipeline that stops counts the iterations that all its stages have") {
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {})->iterations() >= 3);
  stand.deliver(kHost, msg::Interrupt{});
  stand.stop(0, Clock(3));
  CHECK(stand.take<msg::RunEnded>().empty());
  stand.stop(1, Clock(2));
  CHECK(stand.take<msg::RunEnded>().at(0).body.samples_trained == 2 * 2);
}

TEST_CASE("a run may be stopped before all stages have joined") {
  SchedulerStand stand(piped_plan(2));
  stand.join(1);
  stand.deliver(kHost, msg::Interrupt{});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0, 1});
  stand.stop(1);
  stand.join(0);
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});
  CHECK(stand.has_sent_nothing());
  stand.stop(0);
  CHECK(stand.take<msg::RunEnded>().size() == 1);
}

TEST_CASE("only the first stage of a pipeline may request leases") {
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  stand.deliver(1, msg::WantLease{});
  CHECK(stand.take<msg::Lease>().empty());
  const auto refused = stand.take<msg::Refused>();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].to == address_of(WorkerId(1)));
  CHECK(refused[0].body.reason == msg::Refused::Reason::malformed);
  const std::string& text = refused[0].body.text;
  CHECK(text.find("worker 1 is not the first of its pipeline") != std::string::npos);
}

TEST_CASE("messages that were lost with a link are sent again to their stage") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.reconnect(0);  // has sent a message since its Start
  CHECK(stand.has_sent_nothing());
  stand.reconnect(1);
  CHECK(stand.receivers_of<msg::Start>() == Workers{1});
  stand.deliver(1, msg::Idle{{}});
  stand.reconnect(1);
  CHECK(stand.has_sent_nothing());
  // A stage that sends no messages would never be refused.
  stand.end_worker(0);
  stand.forget();
  stand.reconnect(1);
  CHECK(stand.receivers_of<msg::Refused>() == Workers{1});
  stand.reconnect(0);  // a false suspicion: the worker is alive
  CHECK(stand.receivers_of<msg::Refused>() == Workers{0});
  stand.join(1, kRejoined);
  for (const auto& [worker, shard] : stand.pairs_of(0))
    stand.deliver(address_of(shard), msg::Fenced{worker, {}, {}});
  stand.forget();
  stand.reconnect(1);
  CHECK(stand.has_sent_nothing());
  stand.deliver(kHost, msg::Interrupt{});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{1, 2, 3});
  for (const std::uint32_t worker : {1u, 3u}) stand.reconnect(worker);
  CHECK(stand.receivers_of<msg::Stop>() == Workers{1, 3});
}

TEST_CASE("a loss that is not finite, reported by the last stage, ends the run") {
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  stand.deliver(1,
                msg::Diverged{Iteration(4), std::numeric_limits<double>::infinity(), "the loss"});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0, 1});
  for (const std::uint32_t worker : {0u, 1u}) stand.stop(worker);
  CHECK(stand.end_text().find(
            "pipeline 0 stage 1 (worker 1): the loss became infinite in iteration 4") == 0);
}

TEST_CASE("the scheduler watches all stages and counts them in reports") {
  SchedulerStand stand(piped_plan(6, 3));
  for (std::uint32_t worker = 0; worker < 6; ++worker) CHECK(stand.watched(worker) == 1);
  stand.start_all();
  stand.end_worker(4);
  stand.forget();
  stand.fire_report_timer();
  CHECK(stand.take<msg::SchedulerReport>().at(0).body.live_workers == 3);
}

TEST_CASE("the description of a hanging run names each stage") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.evict_first_pipeline();
  stand.join(0, kRejoined);
  stand.deliver(3, msg::Idle{{}});
  CHECK(stand.describe() ==
        "scheduler training, worker 0 gone (stages waits, ended), worker 2 running (stages there, "
        "idle)");
}

}  // namespace leeway::test
