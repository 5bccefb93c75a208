// The scheduler with pipelines of several stages: joining, admission, eviction and return.
#include <algorithm>
#include <catch2/catch.hpp>

#include "plan/fault_queries.hpp"
#include "tests/support/scheduler_stand.hpp"

namespace leeway::test {
namespace {

/// All shards but the last answer their Fence. Returns the last answer, not given yet.
msg::Fenced all_fences_but_one(SchedulerStand& stand, Address& from) {
  const auto asked = stand.take<msg::Fence>();
  for (std::size_t i = 0; i + 1 < asked.size(); ++i)
    stand.hears(asked[i].to, msg::Fenced{asked[i].body.worker, {}, {}});
  from = asked.back().to;
  return {asked.back().body.worker, {}, {}};
}

}  // namespace

TEST_CASE("pipelines are admitted when all stages of all of them have joined, in any order") {
  Workers order = {0, 1, 2, 3};
  do {
    SchedulerStand stand(piped_plan());
    for (std::size_t i = 0; i < 3; ++i) {
      stand.joins(order[i]);
      stand.joins(order[i]);  // workers repeat Join until they are started
    }
    CHECK(stand.says_nothing());
    stand.joins(order[3]);
    Pairs both = stand.pairs_of(0);
    both.merge(stand.pairs_of(2));
    CHECK(stand.pairs<msg::Admit>() == both);
    CHECK(stand.says_nothing());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a shard without parameters of a stage gets no message about it") {
  const SchedulerStand stand(piped_plan());
  CHECK(stand.pairs_of(0).size() < 2 * 3);
  CHECK(stand.pairs_of(0).size() >= 3);
}

TEST_CASE("a pipeline starts when all shards have admitted all stages, with one start number") {
  SchedulerStand stand(piped_plan(2));
  stand.joins(0);
  stand.joins(1);
  const auto asked = stand.take<msg::Admit>();
  for (std::size_t i = 0; i + 1 < asked.size(); ++i)
    stand.hears(asked[i].to, msg::Admitted{asked[i].body.worker, Iteration(0), asked[i].body.view});
  CHECK(stand.says_nothing());
  stand.hears(asked.back().to,
              msg::Admitted{asked.back().body.worker, Iteration(0), asked.back().body.view});
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  for (std::uint32_t i : {0u, 1u}) {
    CHECK(starts[i].to == address_of(WorkerId(i)));
    CHECK(starts[i].body.number == 1);
    CHECK(starts[i].body.iteration == Iteration(0));
  }
  CHECK(stand.says_nothing());  // all shards answered alike: no Raise
}

TEST_CASE("stages that are admitted at different clocks are all raised to the largest") {
  SchedulerStand stand(piped_plan(2));
  stand.joins(0);
  stand.joins(1);
  for (const auto& asked : stand.take<msg::Admit>())
    stand.hears(asked.to, msg::Admitted{asked.body.worker, Iteration(asked.body.worker.value()),
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

TEST_CASE("a pipeline is evicted with any of its stages, in every state") {
  enum class At { joined, admitting, running, idle, stopping };
  for (const At at : {At::joined, At::admitting, At::running, At::idle, At::stopping}) {
    for (const std::uint32_t ended : {0u, 1u}) {
      INFO("state " << static_cast<int>(at) << ", worker " << ended);
      SchedulerStand stand(piped_plan());
      if (at == At::joined || at == At::admitting) {
        for (std::uint32_t worker = 0; worker < (at == At::joined ? 3u : 4u); ++worker)
          stand.joins(worker);
      } else {
        stand.begins();
      }
      if (at == At::idle)
        for (const std::uint32_t worker : {0u, 1u}) stand.hears(worker, msg::Idle{{}, 1});
      if (at == At::stopping) stand.hears(kHost, msg::Interrupt{});
      if (at == At::stopping) stand.hears(1 - ended, msg::Stopped{{}, 1});
      stand.forget();
      stand.ends(ended);
      CHECK(stand.happened<event::Evicted>() == Workers{0});
      CHECK(stand.told<msg::Refused>() == Workers{0, 1});
      Address last;
      const auto answer = all_fences_but_one(stand, last);
      CHECK(stand.pairs<msg::Remove>().empty());
      stand.hears(last, answer);
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
  stand.begins();
  stand.ends(1);
  stand.ends(0);  // the same pipeline
  const auto asked = stand.take<msg::Fence>();
  CHECK(asked.size() == stand.pairs_of(0).size());
  for (int i = 0; i < 20; ++i)
    stand.hears(asked.front().to, msg::Fenced{asked.front().body.worker, {}, {}});
  // Answers of shards that were not asked do not count.
  for (const std::uint32_t worker : {0u, 1u})
    for (const std::uint32_t shard : {0u, 1u, 2u})
      if (!stand.pairs_of(0).contains({WorkerId(worker), ShardId(shard)}))
        for (std::size_t i = 1; i < asked.size(); ++i)
          stand.hears(address_of(ShardId(shard)), msg::Fenced{WorkerId(worker), {}, {}});
  CHECK(stand.take<msg::Remove>().empty());
}

TEST_CASE("a pipeline is admitted again when all stages have joined under new incarnations") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.ends(1);
  stand.joins(0, kNext);  // it was refused; the shards have not answered yet
  CHECK(stand.take<msg::Admit>().empty());
  stand.answer_fences();
  stand.forget();
  for (int i = 0; i < 3; ++i) stand.joins(0, kNext);  // it waits
  CHECK(stand.says_nothing());
  CHECK(stand.watched(1) == 2);  // from the start of the run, and from its Join
  stand.joins(1, kSecondLife);
  CHECK(stand.watched(1) == 3);
  const auto admits = stand.take<msg::Admit>();
  CHECK(admits.size() == stand.pairs_of(0).size());
  for (const auto& admit : admits) {
    CHECK(admit.body.incarnation == (admit.body.worker == WorkerId(0) ? kNext : kSecondLife));
    stand.hears(admit.to, msg::Admitted{admit.body.worker, Iteration(0), admit.body.view});
  }
  const auto starts = stand.take<msg::Start>();
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].body.number == 2);
  CHECK(starts[1].body.number == 2);
  CHECK(starts[0].incarnation == kNext);
  CHECK(starts[1].incarnation == kSecondLife);
  CHECK(stand.leases(0, Iteration(0), {}, kNext));
  // Requests of its earlier incarnation do not count.
  CHECK_FALSE(stand.leases(0, Iteration(0), {}));
}

TEST_CASE("a stage that joins again before the others waits for them, also during the fence") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.ends(1);
  stand.joins(1, kSecondLife);
  stand.answer_fences();
  CHECK(stand.take<msg::Admit>().empty());
  stand.joins(0, kNext);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("delayed messages of earlier incarnations change nothing") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.ends(1);
  stand.joins(1, kSecondLife);
  stand.joins(1, kNext);
  const auto asked = stand.take<msg::Fence>();
  stand.forget();
  stand.joins(0);
  for (const auto& fence : asked) stand.hears(fence.to, msg::Fenced{fence.body.worker, {}, {}});
  CHECK(stand.told<msg::Refused>().empty());
  stand.forget();
  stand.joins(1, kNext);
  CHECK(stand.says_nothing());
  stand.ends(1);
  stand.joins(1, kNext);
  stand.joins(0, kNext);
  CHECK(stand.says_nothing());
  stand.joins(1, first_incarnation(3));
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("while a pipeline is fenced, the latest incarnation of a stage counts") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.ends(1);
  stand.joins(0, kSecondLife);
  stand.joins(0, kNext);
  stand.joins(1, kSecondLife);
  stand.answer_fences();
  for (const auto& admit : stand.take<msg::Admit>()) CHECK(admit.body.incarnation == kSecondLife);
  stand.forget();
  stand.joins(0, kSecondLife);
  CHECK(stand.says_nothing());
}

TEST_CASE("a stage that ends while it waits does not count as joined") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  SECTION("with the pipeline out") {
    stand.loses_the_first();
    stand.joins(0, kNext);
    stand.ends(0);
  }
  SECTION("with the pipeline being fenced") {
    stand.ends(1);
    stand.joins(0, kNext);
    stand.ends(0);
    stand.answer_fences();
  }
  stand.joins(1, kSecondLife);
  CHECK(stand.take<msg::Admit>().empty());
  stand.joins(0, kSecondLife);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("a new incarnation of a stage evicts the pipeline and joins the next one") {
  for (const bool running : {true, false}) {
    SchedulerStand stand(piped_plan());
    if (running) {
      stand.begins();
    } else {
      for (const std::uint32_t worker : {0u, 1u, 2u, 3u}) stand.joins(worker);
      stand.forget();
    }
    stand.joins(1, kSecondLife);
    CHECK(stand.pairs<msg::Fence>() == stand.pairs_of(0));
    if (running) stand.joins(1, kSecondLife);  // again
    CHECK(stand.pairs<msg::Fence>().empty());
    for (const auto& [worker, shard] : stand.pairs_of(0))
      stand.hears(address_of(shard), msg::Fenced{worker, {}, {}});
    CHECK(stand.take<msg::Evicted>().at(0).body.reason ==
          "worker 1 (stage 1): a new life of it has begun");
    stand.joins(0, kNext);
    CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  }
}

TEST_CASE("a stage that is evicted before its Start must join under a new incarnation") {
  SchedulerStand stand(piped_plan());
  stand.joins(0);
  stand.loses_the_first();
  stand.joins(0);
  CHECK(stand.told<msg::Refused>() == Workers{0});
  stand.joins(0, kNext);
  CHECK(stand.says_nothing());
}

TEST_CASE("a run ends without a pipeline that lacks a stage, and its waiting stages are stopped") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.loses_the_first();
  stand.joins(0, kNext);
  const Iteration end = stand.trains_all(2);
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Idle{Clock(end.value()), 1});
  CHECK(stand.told<msg::Stop>() == Workers{0, 2, 3});
  stand.forget();
  stand.hears(0, msg::Stopped{{}, 1}, kNext);
  CHECK(stand.says_nothing());
  for (const std::uint32_t worker : {2u, 3u}) stand.hears(worker, msg::Stopped{{}, 1});
  const auto ended = stand.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].body.reason == msg::RunEnded::Reason::finished);
  CHECK(ended[0].body.samples_trained == 120);
  CHECK(stand.take<msg::Finish>().size() == 3);
  // A stage that joins now is stopped as well.
  stand.joins(1, kSecondLife);
  CHECK(stand.told<msg::Stop>() == Workers{1});
}

TEST_CASE("the run fails with its last pipeline, and the waiting stages are stopped") {
  SchedulerStand stand(piped_plan(2));
  stand.begins();
  stand.ends(1);
  stand.joins(0, kNext);
  stand.answer_fences();
  CHECK(stand.told<msg::Stop>() == Workers{0});
  CHECK(stand.end() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
        "1 (stage 1): boom");
}

TEST_CASE("the run goes on while the plan restarts the missing stages of a pipeline") {
  Plan plan = piped_plan(2);
  plan.faults = {{address_of(WorkerId(1)), 1.0, 0, plan::Crash{0.5}}};
  SchedulerStand stand(plan);
  stand.begins();
  stand.ends(1, plan::reason_of(plan::Crash{0.5}));
  stand.answer_fences();
  CHECK(stand.end().empty());
  stand.joins(0, kNext);
  SECTION("until another stage ends for good") {
    stand.ends(0);
    CHECK(stand.end() ==
          "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
          "1 (stage 1): fault of the plan: crash");
  }
  SECTION("until that is asked to leave") {
    stand.hears(kHost, msg::Leave{WorkerId(0)});
    CHECK(stand.happened<event::Left>() == Workers{0, 1});
    CHECK_THAT(stand.end(), Catch::Contains("no worker is left to make a pipeline of"));
  }
  SECTION("and it comes") {
    stand.joins(1, kSecondLife);
    CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  }
}

TEST_CASE(
    "a worker that has crashed for good is not awaited, even if it returned from a crash before") {
  Plan plan = piped_plan(2);
  plan.faults = {{address_of(WorkerId(1)), 1.0, 0, plan::Crash{0.5}},
                 {address_of(WorkerId(1)), 2.0, 0, plan::Crash{}}};
  SchedulerStand stand(plan);
  stand.begins();
  stand.ends(1, plan::reason_of(plan::Crash{}));
  stand.answer_fences();
  CHECK(stand.end() ==
        "no worker is left to make a pipeline of; the last to end was that of worker 0: worker "
        "1 (stage 1): fault of the plan: crash for good");
}

TEST_CASE("the run goes on while all stages of a pipeline live, though not all have joined") {
  SchedulerStand stand(piped_plan());
  stand.begins();
  stand.loses_the_first();
  stand.joins(1, kSecondLife);  // and 0 is about to
  stand.ends(2);
  stand.ends(3);
  stand.answer_fences();
  CHECK(stand.end().empty());
  stand.joins(0, kNext);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("the run waits for a stage that the plan brings, but only for its first start") {
  Plan plan = piped_plan();
  plan.faults = {{address_of(WorkerId(3)), 1.0, 0, plan::Joins{}}};
  SchedulerStand stand(plan);
  for (const std::uint32_t worker : {0u, 1u}) stand.joins(worker);
  for (const std::uint32_t worker : {0u, 1u}) stand.ends(worker);
  stand.answer_fences();
  CHECK(stand.end().empty());
  for (const std::uint32_t worker : {2u, 3u}) stand.joins(worker);
  stand.ends(3);
  stand.answer_fences();
  CHECK(stand.end().find("no worker is left") == 0);
}

TEST_CASE("the run does not wait for a stage that may never come") {
  SchedulerStand stand(piped_plan(), {WorkerId(3)});
  for (const std::uint32_t worker : {0u, 1u, 2u}) stand.joins(worker);
  stand.ends(0);
  stand.answer_fences();
  CHECK(stand.end().find("no worker is left") == 0);
}

TEST_CASE("when the pipeline that the first start waits for ends, the others start") {
  SchedulerStand stand(piped_plan());
  for (const std::uint32_t worker : {0u, 1u, 2u, 3u}) stand.joins(worker);
  for (const auto& asked : stand.take<msg::Admit>())
    if (asked.body.worker >= WorkerId(2))
      stand.hears(asked.to, msg::Admitted{asked.body.worker, Iteration(0), asked.body.view});
  CHECK(stand.take<msg::Start>().empty());
  stand.ends(0);
  CHECK(stand.told<msg::Start>() == Workers{2, 3});
}

TEST_CASE("the run begins without a pipeline that has lost a stage, and admits it later") {
  SchedulerStand stand(piped_plan());
  for (const std::uint32_t worker : {0u, 2u, 3u}) stand.joins(worker);
  stand.ends(1);
  // The other pipeline is admitted before the shards have answered the Fence.
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(2));
  stand.answer_fences();
  stand.joins(0, kNext);
  stand.joins(1, kSecondLife);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
}

TEST_CASE("a pipeline joins late when one of its stages does") {
  Plan plan = piped_plan();
  plan.faults = {{address_of(WorkerId(3)), 1.0, 0, plan::Joins{}}};
  SchedulerStand stand(plan);
  stand.joins(2);
  CHECK(stand.says_nothing());
  for (const std::uint32_t worker : {0u, 1u}) stand.joins(worker);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(0));
  stand.joins(2);
  CHECK(stand.says_nothing());
  stand.joins(3);
  CHECK(stand.pairs<msg::Admit>() == stand.pairs_of(2));
}

}  // namespace leeway::test
