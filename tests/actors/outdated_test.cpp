// delay_threshold in whole runs, and in a shard.
#include <catch2/catch.hpp>

#include "actors/worker/parameter_client.hpp"
#include "sim/simulation.hpp"
#include "tests/actors/shard_scene.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

Plan limited_plan(double limit) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Asp{};
  plan.delay_policy = plan::DelayThreshold{limit};
  return plan;
}

std::uint64_t outdated_of(const RunTotals& totals) {
  std::uint64_t count = 0;
  for (const WorkerTotals& worker : totals.workers) count += worker.outdated;
  return count;
}

RunTotals run_limited(const Plan& plan, std::uint64_t seed, const FaultRates& faults = {}) {
  const auto job = job_of(plan);
  TestHost host(job, seed, faults);
  observe_all(host, job);
  RunTotals totals = host.run();
  REQUIRE(totals.end.reason == msg::RunEnded::Reason::finished);
  return totals;
}

std::vector<Iteration> outdated_at(ShardScene& scene, WorkerId worker) {
  std::vector<Iteration> iterations;
  for (const auto& sent : scene.sent_to<msg::Outdated>(address_of(worker)))
    iterations.push_back(sent.iteration);
  return iterations;
}

}  // namespace

TEST_CASE("outdated iterations are computed again, and each sample is trained once", "[delay]") {
  std::uint64_t outdated = 0;
  for (std::uint64_t seed = 1100; seed < 1140; ++seed) {
    CAPTURE(seed);
    Plan plan = limited_plan(seed % 2 == 0 ? 1 : 2);
    plan.prefetch = seed % 2 == 1;
    const RunTotals totals = run_limited(plan, seed);
    CHECK(totals.end.samples_trained == 120);
    outdated += outdated_of(totals);
  }
  CHECK(outdated > 10);
}

TEST_CASE("no push is much older than the limit, with a worker that is far slower", "[delay]") {
  for (const bool prefetch : {false, true}) {
    CAPTURE(prefetch);
    Plan plan = limited_plan(6);
    plan.model = {plan::Linear{3}};  // pushed at the end of the computation
    plan.shards = 1;
    plan.optimizer.whole_steps = true;  // so that the limit counts versions
    plan.optimizer.learning_rate = 0.005;
    plan.prefetch = prefetch;
    plan.stop.epochs = 20;
    plan.stragglers = {{.worker = 2, .kind = plan::ConstantFactor{10}}};
    plan.simulated = plan::World{.speed = 1e-5};
    sim::Simulation simulation(job_of(plan), {});
    REQUIRE(simulation.run() == "");
    const RunTotals& totals = simulation.totals();
    CHECK(totals.end.samples_trained == 1200);
    CHECK(outdated_of(totals) > 10);
    // During a message the other two may push.
    for (std::size_t lag = 6 + 3; lag < totals.version_lags.size(); ++lag)
      CHECK(totals.version_lags[lag] == 0);
  }
}

TEST_CASE("samples of outdated iterations survive lost workers and broken links", "[delay]") {
  for (std::uint64_t seed = 1300; seed < 1360; ++seed) {
    CAPTURE(seed);
    const RunTotals totals =
        run_limited(limited_plan(1), seed, {.kill_one_in = 800, .break_link_one_in = 60});
    CHECK(totals.end.samples_trained == 120);
  }
}

TEST_CASE("a limit that no lag reaches changes no bit", "[delay]") {
  Plan plain = limited_plan(1);
  plain.delay_policy = plan::PlainPush{};
  const RunTotals limited = run_limited(limited_plan(1e6), 7);
  CHECK(outdated_of(limited) == 0);
  CHECK(floats_of(limited.weights) == floats_of(run_limited(plain, 7).weights));
}

TEST_CASE("shard 0 reports an outdated pull before its iteration is pushed, not after", "[delay]") {
  const WorkerId fast(0), slow(1), pushing(2);
  Plan plan = limited_plan(1);
  plan.shards = 1;
  ShardScene scene(job_of(plan));
  scene.admit_all();
  REQUIRE(scene.pull(slow, 0));
  REQUIRE(scene.pull(pushing, 0));
  scene.push(pushing, 0, 0);
  for (std::int64_t i = 0; i < 3; ++i) {  // each has weight 1/3
    CHECK(outdated_at(scene, slow).empty());
    REQUIRE(scene.pull(fast, i));
    scene.push_all(fast, i);
  }
  CHECK(outdated_at(scene, slow) == std::vector{Iteration(0)});
  CHECK(outdated_at(scene, pushing).empty());
  REQUIRE(scene.pull(slow, 0));  // with newer weights
  REQUIRE(scene.pull(fast, 3));
  scene.push_all(fast, 3);
  CHECK(outdated_at(scene, slow).empty());
}

TEST_CASE("an outdated pull is forgotten once it is answered, and its late answers are ignored",
          "[delay]") {
  const auto job = job_of(limited_plan(1));
  const WorkerId worker(0);
  const Iteration first(0);
  ParameterClient client(job, worker);
  RecordingOutbox out;
  const auto answer = [&](std::uint32_t shard, std::uint32_t number) {
    msg::Weights weights{.iteration = first, .number = number};
    for (const BlockId id : job->stages->share_of(worker).at[shard].blocks) {
      const std::int64_t floats = job->layout->block(id).floats;
      weights.blocks.push_back(
          {id, Version(number), DType::f32, Shape{floats}, Blob::floats(floats)});
    }
    return *client.take_in(address_of(ShardId(shard)), weights);
  };
  client.pull(first, Clock(0), out);
  CHECK_FALSE(answer(0, 1));
  client.outdate(first);
  CHECK(client.asked(first));  // the other shard has not answered
  CHECK(answer(1, 1));
  CHECK_FALSE(client.asked(first));
  client.pull(first, Clock(0), out);
  CHECK_FALSE(answer(0, 1));  // a repeated answer to the first pull
  CHECK_FALSE(answer(1, 2));
  CHECK(answer(0, 2));
  for (const Version version : client.take(first).versions) CHECK(version == Version(2));
}

TEST_CASE("an outdated notice of another shard, or without a limit, is malformed", "[delay]") {
  struct Refusals final : sim::Observer {
    void on_event(Instant, Address, const Event& event) override {
      count += event.as<event::Malformed>() ? 1 : 0;
    }
    int count = 0;
  };
  for (const bool limited : {true, false}) {
    Plan plan = limited_plan(4);
    if (!limited) plan.delay_policy = plan::PlainPush{};
    TestHost host(job_of(plan), 1);
    const auto refusals = std::make_shared<Refusals>();
    host.observe(refusals);
    REQUIRE(host.run_some(50));
    host.inject(address_of(ShardId(limited ? 1 : 0)), address_of(WorkerId(0)),
                encode({.body = msg::Outdated{Iteration(0)}}));
    CHECK(host.run().end.samples_trained == 120);
    CHECK(refusals->count == 1);
  }
}

}  // namespace leeway::test
