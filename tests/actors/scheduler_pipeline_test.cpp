// The scheduler with pipelines of several stages: joining, admission, eviction and return.
#include <algorithm>
#include <catch2/catch.hpp>

#include "plan/fault_queries.hpp"
#include "tests/support/scheduler_stand.hpp"

namespace leeway::test {
namespace {

/// Answers all Fences except the last. Returns the last answer, which is not delivered.
msg::Fenced all_fences_but_one(SchedulerStand& stand, Address& from) {
  const auto asked = stand.take<msg::Fence>();
  for (std::size_t i = 0; i + 1 < asked.size(); ++i)
    stand.deliver(asked[i].to, msg::Fenced{asked[i].body.worker, {}, {}});
  from = asked.back().to;
  return {asked.back().body.worker, {}, {}};
}

}  // namespace

TEST_CASE("pipelines are admitted when all of their stages have joined, in any order") {
  Workers order = {0, 1, 2, 3};
  do {
    SchedulerStand stand(piped_plan());
    for (std::size_t i = 0; i < 3; ++i) {
      stand.join(order[i]);
      stand.join(order[i]);  // workers repeat Join until they get a Start
    }
    CHECK(stand.has_sent_nothing());
    stand.join(order[3]);
    Pairs both = stand.pairs_of(0);
    both.merge(stand.pairs_of(2));
    CHECK(stand.pairs<msg::Admit>() == both);
    CHECK(stand.has_sent_nothing());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a shard without parameters of a stage gets no message about that stage") {
  const SchedulerStand stand(piped_plan());
  CHECK(stand.pairs_of(0).size() < 2 * 3);
  CHECK(stand.pairs_of(0).size() >= 3);
}

TEST_CASE("a pipeline starts when all shards have admitted all stages, in one session") {
  SchedulerStand stand(piped_plan(2));
  stand.join(0);
  stand.join(1);
  const auto asked = stand.take<msg::Admit>();
  for (std::size_t i = 0; i + 1 < asked.size(); ++i)
    stand.deliver(asked[i].to,
                  msg::Admitted{asked[i].body.worker, Iteration(0), asked[i].body.view});
  CHECK(stand.has_sent_nothing());
  stand.deliver(asked.back().to,
                msg::Admitted{asked.back().body.worker, Iteration(0), asked.back().body.view});
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  for (std::uint32_t i : {0u, 1u}) {
    CHECK(starts[i].to == address_of(WorkerId(i)));
    CHECK(starts[i].session == Session(1));
    CHECK(starts[i].body.iteration == Iteration(0));
  }
  CHECK(stand.has_sent_nothing());  // all shards answered alike: no Raise
}

TEST_CASE("stages that are admitted at different clocks are all raised to the largest") {
  SchedulerStand stand(piped_plan(2));
  stand.join(0);
  stand.join(1);
  for (const auto& asked : stand.take<msg::Admit>())
    stand.deliver(asked.to, msg::Admitted{asked.body.worker, Iteration(asked.body.worker.value()),
                                          asked.body.view});
  const auto raises = stand.take<msg::Raise>();
  Pairs raised;
  for (const auto& raise : raises) {
    raised.emplace(raise.body.worker, ShardId(raise.to.index));
    CHECK(raise.body.iteration == Iteration(1));
  }
  CHECK(raised == stand.pairs_of(0));
  for (const auto& start : stand.take<msg::Start>()) CHECK(start.body.iteration == Iteration(1));
}

TEST_CASE("a pipeline in any state is evicted when one of its stages ends") {
  enum class At { joined, admitting, running, idle, stopping };
  for (const At at : {At::joined, At::admitting, At::running, At::idle, At::stopping}) {
    for (const std::uint32_t ended : {0u, 1u}) {
      INFO("state " << static_cast<int>(at) << ", worker " << ended);
      SchedulerStand stand(piped_plan());
      if (at == At::joined || at == At::admitting) {
        for (std::uint32_t worker = 0; worker < (at == At::joined ? 3u : 4u); ++worker)
          stand.join(worker);
      } else {
        stand.start_all();
      }
      if (at == At::idle)
        for (const std::uint32_t worker : {0u, 1u}) stand.deliver(worker, msg::Idle{{}});
      if (at == At::stopping) stand.deliver(kHost, msg::Interrupt{});
      if (at == At::stopping) stand.stop(1 - ended);
      stand.forget();
      stand.end_worker(ended);
      CHECK(stand.happened<event::Evicted>() == Workers{0});
      // Before their Start, the others wait for one. The idle pipeline is being admitted: there are
      // samples.
      const bool started = at == At::running || at == At::stopping;
      CHECK(stand.receivers_of<msg::Refused>() == (started ? Workers{0, 1} : Workers{ended}));
      Address last;
      const auto answer = all_fences_but_one(stand, last);
      CHECK(stand.pairs<msg::Remove>().empty());
      stand.deliver(last, answer);
      CHECK(stand.pairs<msg::Remove>() == stand.pairs_of(0));
      const auto evicted = stand.take<msg::Evicted>();
      REQUIRE(evicted.size() == 1);
      CHECK(evicted[0].body.worker == WorkerId(0));
      CHECK(evicted[0].body.reason ==
            (ended == 0 ? "worker 0 (stage 0): boom" : "worker 1 (stage 1): boom"));
      CHECK_FALSE(evicted[0].body.partial);
      CHECK(stand.take<msg::Start>().empty());
    }
  }
}

TEST_CASE("each stage is fenced once at each shard, and each answer counts once") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.end_worker(0);  // the same pipeline
  const auto asked = stand.take<msg::Fence>();
  CHECK(asked.size() == stand.pairs_of(0).size());
  for (int i = 0; i < 20; ++i)
    stand.deliver(asked.front().to, msg::Fenced{asked.front().body.worker, {}, {}});
  // Answers of shards without a Fence are ignored.
  for (const std::uint32_t worker : {0u, 1u})
    for (const std::uint32_t shard : {0u, 1u, 2u})
      if (!stand.pairs_of(0).contains({WorkerId(worker), ShardId(shard)}))
        for (std::size_t i = 1; i < asked.size(); ++i)
          stand.deliver(address_of(ShardId(shard)), msg::Fenced{WorkerId(worker), {}, {}});
  CHECK(stand.take<msg::Remove>().empty());
}

TEST_CASE("a pipeline is admitted again, in the next session, when all stages have joined again") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.join(0, kRejoined);  // after its refusal, before the shards have answered
  CHECK(stand.take<msg::Admit>().empty());
  stand.answer_fences();
  stand.forget();
  for (int i = 0; i < 3; ++i) stand.join(0, kRejoined);  // waits for worker 1
  CHECK(stand.has_sent_nothing());
  CHECK(stand.watched(1) == 2);  // at the start of the run, and at its Join
  stand.join(1, kRestarted);
  CHECK(stand.watched(1) == 3);
  const auto admits = stand.take<msg::Admit>();
  CHECK(admits.size() == stand.pairs_of(0).size());
  for (const auto& admit : admits) {
    CHECK(admit.body.session == Session(2));
    stand.deliver(admit.to, msg::Admitted{admit.body.worker, Iteration(0), admit.body.view});
  }
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  for (const auto& start : starts) CHECK(start.session == Session(2));
  CHECK(starts[0].body.nonce == kRejoined);
  CHECK(starts[1].body.nonce == kRestarted);
  CHECK(stand.request_lease(0, Iteration(0), {}));
  // Requests of the earlier session are ignored.
  CHECK_FALSE(stand.request_lease(0, Iteration(0), {}, Session(1)));
}

TEST_CASE("a stage that joins again before the others waits for them, also during the fence") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.join(1, kRestarted);
  stand.answer_fences();
  CHECK(stand.take<msg::Admit>().empty());
  stand.join(0, kRejoined);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("delayed messages of earlier sessions change nothing") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.join(1, kRestarted);
  stand.join(1, kRejoined);
  const auto asked = stand.take<msg::Fence>();
  stand.forget();
  stand.join(0);
  for (const auto& fence : asked) stand.deliver(fence.to, msg::Fenced{fence.body.worker, {}, {}});
  CHECK(stand.receivers_of<msg::Refused>().empty());
  stand.forget();
  stand.join(1, kRejoined);
  CHECK(stand.has_sent_nothing());
  stand.end_worker(1);
  stand.forget();
  stand.join(1, kRejoined);
  stand.join(0, kRejoined);
  CHECK(stand.has_sent_nothing());
  stand.join(1, first_nonce(3));
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("while a pipeline is fenced, the latest Join of a stage counts") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.end_worker(1);
  stand.join(0, kRestarted);
  stand.join(0, kRejoined);
  stand.join(1, kRestarted);
  stand.answer_fences();
  stand.answer_admits();
  for (const auto& start : stand.take<msg::Start>()) CHECK(start.body.nonce == kRestarted);
  stand.forget();
  stand.join(0, kRestarted);
  CHECK(stand.has_sent_nothing());
}

TEST_CASE("a stage that ends while it waits is not joined") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  SECTION("the pipeline is gone") {
    stand.evict_first_pipeline();
    stand.join(0, kRejoined);
    stand.end_worker(0);
  }
  SECTION("the pipeline is being fenced") {
    stand.end_worker(1);
    stand.join(0, kRejoined);
    stand.end_worker(0);
    stand.answer_fences();
  }
  stand.join(1, kRestarted);
  CHECK(stand.take<msg::Admit>().empty());
  stand.join(0, kRestarted);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("a Join of a stage in a running pipeline evicts the pipeline, and counts for the next") {
  for (const bool running : {true, false}) {
    SchedulerStand stand(piped_plan());
    if (running) {
      stand.start_all();
    } else {
      for (const std::uint32_t worker : {0u, 1u, 2u, 3u}) stand.join(worker);
      stand.forget();
    }
    stand.join(1, kRestarted);
    CHECK(stand.pairs<msg::Fence>() == stand.pairs_of(0));
    if (running) stand.join(1, kRestarted);  // again
    CHECK(stand.pairs<msg::Fence>().empty());
    for (const auto& [worker, shard] : stand.pairs_of(0))
      stand.deliver(address_of(shard), msg::Fenced{worker, {}, {}});
    CHECK(stand.take<msg::Evicted>().at(0).body.reason == "worker 1 (stage 1): it joins again");
    stand.join(0, kRejoined);
    CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  }
}

TEST_CASE("a stage whose pipeline is evicted before its Start need not join again") {
  SchedulerStand stand(piped_plan());
  stand.join(0);
  SECTION("before all stages have joined") {}
  SECTION("while the shards admit it") {
    stand.join(1);
    stand.forget();
  }
  stand.evict_first_pipeline();
  stand.join(0);  // a repeat
  CHECK(stand.has_sent_nothing());
  stand.join(1, kRestarted);
  for (const std::uint32_t worker : {2u, 3u}) stand.join(worker);
  Pairs all = stand.pairs_of(0);
  all.merge(stand.pairs_of(2));
  CHECK(stand.pairs<msg::Admit>() == all);
}

TEST_CASE("a run ends without an incomplete pipeline, whose waiting stages are stopped") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.evict_first_pipeline();
  stand.join(0, kRejoined);
  const Iteration end = stand.train_all(2);
  for (const std::uint32_t worker : {2u, 3u}) stand.deliver(worker, msg::Idle{Clock(end.value())});
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0, 2, 3});
  stand.forget();
  stand.stop(0);
  CHECK(stand.has_sent_nothing());
  for (const std::uint32_t worker : {2u, 3u}) stand.stop(worker);
  const auto ended = stand.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].body.reason == msg::RunEnded::Reason::finished);
  CHECK(ended[0].body.samples_trained == 120);
  CHECK(stand.take<msg::Finish>().size() == 3);
  // A stage that joins later is stopped as well.
  stand.join(1, kRestarted);
  CHECK(stand.receivers_of<msg::Stop>() == Workers{1});
}

TEST_CASE("the run fails with its last pipeline, and the waiting stages are stopped") {
  SchedulerStand stand(piped_plan(2));
  stand.start_all();
  stand.end_worker(1);
  stand.join(0, kRejoined);
  stand.answer_fences();
  CHECK(stand.receivers_of<msg::Stop>() == Workers{0});
  CHECK(stand.end_text() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
        "1 (stage 1): boom");
}

TEST_CASE("the run continues while the plan restarts the missing stages of a pipeline") {
  Plan plan = piped_plan(2);
  plan.faults = {{address_of(WorkerId(1)), 1.0, 0, plan::Crash{0.5}}};
  SchedulerStand stand(plan);
  stand.start_all();
  stand.end_worker(1, plan::reason_of(plan::Crash{0.5}));
  stand.answer_fences();
  CHECK(stand.end_text().empty());
  stand.join(0, kRejoined);
  SECTION("another stage ends for good") {
    stand.end_worker(0);
    CHECK(stand.end_text() ==
          "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
          "1 (stage 1): fault of the plan: crash");
  }
  SECTION("the missing stage gets a Leave") {
    stand.deliver(kHost, msg::Leave{WorkerId(0)});
    CHECK(stand.happened<event::Left>() == Workers{0, 1});
    CHECK_THAT(stand.end_text(), Catch::Contains("no worker is left to make a pipeline of"));
  }
  SECTION("the missing stage joins") {
    stand.join(1, kRestarted);
    CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  }
}

TEST_CASE(
    "the run does not wait for a worker that has crashed for good, even after an earlier restart") {
  Plan plan = piped_plan(2);
  plan.faults = {{address_of(WorkerId(1)), 1.0, 0, plan::Crash{0.5}},
                 {address_of(WorkerId(1)), 2.0, 0, plan::Crash{}}};
  SchedulerStand stand(plan);
  stand.start_all();
  stand.end_worker(1, plan::reason_of(plan::Crash{}));
  stand.answer_fences();
  CHECK(stand.end_text() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
        "1 (stage 1): fault of the plan: crash for good");
}

TEST_CASE("the run continues while all stages of a pipeline live, before all have joined") {
  SchedulerStand stand(piped_plan());
  stand.start_all();
  stand.evict_first_pipeline();
  stand.join(1, kRestarted);  // worker 0 joins later
  stand.end_worker(2);
  stand.end_worker(3);
  stand.answer_fences();
  CHECK(stand.end_text().empty());
  stand.join(0, kRejoined);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("the run waits for a stage that the plan adds, but only for its first start") {
  Plan plan = piped_plan();
  plan.faults = {{address_of(WorkerId(3)), 1.0, 0, plan::Joins{}}};
  SchedulerStand stand(plan);
  for (const std::uint32_t worker : {0u, 1u}) stand.join(worker);
  for (const std::uint32_t worker : {0u, 1u}) stand.end_worker(worker);
  stand.answer_fences();
  CHECK(stand.end_text().empty());
  for (const std::uint32_t worker : {2u, 3u}) stand.join(worker);
  stand.end_worker(3);
  stand.answer_fences();
  CHECK(stand.end_text().find("no worker is left") == 0);
}

TEST_CASE("the run does not wait for a stage that may never join") {
  SchedulerStand stand(piped_plan(), {WorkerId(3)});
  for (const std::uint32_t worker : {0u, 1u, 2u}) stand.join(worker);
  stand.end_worker(0);
  stand.answer_fences();
  CHECK(stand.end_text().find("no worker is left") == 0);
}

TEST_CASE("when the pipeline that the first start waits for ends, the others start") {
  SchedulerStand stand(piped_plan());
  for (const std::uint32_t worker : {0u, 1u, 2u, 3u}) stand.join(worker);
  for (const auto& asked : stand.take<msg::Admit>())
    if (asked.body.worker >= WorkerId(2))
      stand.deliver(asked.to, msg::Admitted{asked.body.worker, Iteration(0), asked.body.view});
  CHECK(stand.take<msg::Start>().empty());
  stand.end_worker(0);
  CHECK(stand.receivers_of<msg::Start>() == Workers{2, 3});
}

TEST_CASE("the run starts without a pipeline that has lost a stage, and admits it later") {
  SchedulerStand stand(piped_plan());
  for (const std::uint32_t worker : {0u, 2u, 3u}) stand.join(worker);
  stand.end_worker(1);
  // The other pipeline is admitted before the shards have answered the Fence.
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(2));
  stand.answer_fences();
  stand.join(0, kRejoined);
  stand.join(1, kRestarted);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("a pipeline joins when its last stage does") {
  Plan plan = piped_plan();
  plan.faults = {{address_of(WorkerId(3)), 1.0, 0, plan::Joins{}}};
  SchedulerStand stand(plan);
  stand.join(2);
  CHECK(stand.has_sent_nothing());
  for (const std::uint32_t worker : {0u, 1u}) stand.join(worker);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  stand.join(2);
  CHECK(stand.has_sent_nothing());
  stand.join(3);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(2));
}

}  // namespace leeway::test
