// What each fault does to a run, and that the protocol survives it.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "sim/simulation.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using test::job_of;
using test::tiny_plan;

constexpr Address kWorker1{RoleKind::worker, 1}, kShard0{RoleKind::shard, 0};

/// About a millisecond an iteration, twenty a worker.
Plan plan_with(std::vector<plan::Fault> faults) {
  Plan plan = tiny_plan();
  plan.simulated = plan::World{.speed = 3e-3, .noise = 0, .jitter = 0, .detection_ms = 5};
  plan.faults = std::move(faults);
  return plan;
}

struct Told {
  RunTotals totals;
  double seconds = 0;
  std::map<std::pair<Address, std::size_t>, int> events;  // by index of the type
  std::map<WorkerId, int> evicted;

  template <class T>
  int count(Address actor) const {
    const auto found = events.find({actor, Event(T{}).index()});
    return found == events.end() ? 0 : found->second;
  }
  int repeated() const {
    return count<event::BucketRepeated>(kShard0) +
           count<event::BucketRepeated>(address_of(ShardId(1)));
  }
};

Told run(const Plan& plan) {
  Told told;
  Simulation simulation(job_of(plan), {},
                        {.on_event = [&](Address actor, Instant, const Event& event) {
                          ++told.events[{actor, event.index()}];
                          if (const auto* evicted = event.as<event::Evicted>())
                            ++told.evicted[evicted->worker];
                        }});
  REQUIRE(simulation.run() == "");
  told.totals = simulation.totals();
  told.seconds = (simulation.host().now() - Instant{}).seconds();
  return told;
}

Told run_with(plan::Fault fault) {
  return run(plan_with({std::move(fault)}));
}

double usual_seconds() {
  return run(plan_with({})).seconds;
}

void check_trained(const Told& told) {
  CHECK(told.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(told.totals.end.samples_trained == 2 * 60);
}

}  // namespace

TEST_CASE("a worker that crashes is evicted, and one that is started again takes part again") {
  const Told gone = run_with({kWorker1, std::int64_t{5}, 0, plan::Crash{}});
  check_trained(gone);
  CHECK(gone.evicted.at(WorkerId(1)) == 1);
  CHECK(gone.count<event::StepFinished>(kWorker1) <= 6);
  const Told back = run_with({kWorker1, std::int64_t{5}, 0, plan::Crash{0.002}});
  check_trained(back);
  CHECK(back.evicted.at(WorkerId(1)) == 1);
  CHECK(back.count<event::StepFinished>(kWorker1) > 8);
}

TEST_CASE("a worker that joins late is not waited for, and takes its part from then on") {
  const double usual = usual_seconds();
  const Told told = run_with({kWorker1, usual / 2, 0, plan::Joins{}});
  check_trained(told);
  CHECK(told.evicted.empty());
  const int late = told.count<event::StepFinished>(kWorker1);
  CHECK(late >= 3);
  CHECK(late < told.count<event::StepFinished>(address_of(WorkerId(0))) - 4);
}

TEST_CASE("a worker that leaves finishes its iteration, and the others train the rest") {
  const Told told = run_with({kWorker1, std::int64_t{5}, 0, plan::Leaves{}});
  check_trained(told);
  CHECK(told.evicted.empty());
  CHECK(told.totals.end.partial_pushes == 0);
  CHECK(told.count<event::Left>(kScheduler) == 1);
  const int steps = told.count<event::StepStarted>(kWorker1);
  CHECK(steps >= 6);
  CHECK(steps <= 7);
  CHECK(told.count<event::StepFinished>(kWorker1) == steps);
}

TEST_CASE("a worker that leaves while it is late waits for no step that nobody wants") {
  Plan plan = plan_with({{kWorker1, std::int64_t{5}, 0, plan::Leaves{}}});
  plan.consistency = plan::Backup{1};
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{3}}};
  for (plan.seed = 1; plan.seed <= 10; ++plan.seed) {
    INFO("seed " << plan.seed);
    const Told told = run(plan);
    check_trained(told);
    CHECK(told.totals.end.partial_pushes == 0);
    CHECK(told.count<event::Left>(kScheduler) == 1);
    CHECK(told.count<event::StepFinished>(kWorker1) == told.count<event::StepStarted>(kWorker1));
  }
}

TEST_CASE("when all workers have left the run fails, unless one is to come") {
  std::vector<plan::Fault> faults;
  for (const std::uint32_t worker : {0u, 1u})
    faults.push_back({address_of(WorkerId(worker)), std::int64_t{5}, 0, plan::Leaves{}});
  const Address last = address_of(WorkerId(2));
  SECTION("nobody comes") {
    faults.push_back({last, std::int64_t{5}, 0, plan::Leaves{}});
    const Told told = run(plan_with(faults));
    CHECK(told.totals.end.reason == msg::RunEnded::Reason::failed);
    CHECK(told.totals.end.text.find("no worker is left") == 0);
    CHECK_FALSE(told.totals.weights.empty());
  }
  SECTION("one comes") {
    faults.push_back({last, 1.0, 0, plan::Joins{}});
    const Told told = run(plan_with(faults));
    check_trained(told);
    CHECK(told.seconds > 1.0);
  }
}

TEST_CASE("a worker that is told to leave while it is snapshot off leaves when it is back") {
  // The Stop is lost with the link; evicted or not, it is told again.
  const double broken = GENERATE(0.003, 0.02);
  const Told told = run(plan_with({{kWorker1, std::int64_t{5}, 0, plan::Breaks{kScheduler, broken}},
                                   {kWorker1, std::int64_t{5}, 0, plan::Leaves{}}}));
  check_trained(told);
  CHECK(told.evicted.size() == (broken > 0.01 ? 1 : 0));
  CHECK(told.count<event::Left>(kScheduler) >= 1);
  CHECK(told.count<event::StepFinished>(kWorker1) < 15);
}

TEST_CASE("a worker that stands still is evicted after the detection, and comes back") {
  const Told brief = run_with({kWorker1, std::int64_t{5}, 0, plan::Freeze{0.004}});
  check_trained(brief);
  CHECK(brief.evicted.empty());
  CHECK(brief.seconds > usual_seconds());
  const Told lasting = run_with({kWorker1, std::int64_t{5}, 0, plan::Freeze{0.01}});
  check_trained(lasting);
  CHECK(lasting.evicted.at(WorkerId(1)) == 1);
  CHECK(lasting.count<event::Admitted>(kShard0) == 4);
}

TEST_CASE("what a broken connection lost is sent again") {
  const double usual = usual_seconds();
  for (const Address peer : {kShard0, kScheduler}) {
    int repeated = 0;
    for (int part = 0; part < 20; ++part) {
      Plan plan = plan_with({{kWorker1, usual * part / 20, 0, plan::Breaks{peer, 0.001}}});
      plan.simulated->latency_us = 300;
      const Told told = run(plan);
      check_trained(told);
      CHECK(told.evicted.empty());
      repeated += told.repeated();
    }
    CHECK((repeated > 0) == (peer == kShard0));
  }
  const Told away = run_with({kWorker1, std::int64_t{5}, 0, plan::Breaks{kScheduler, 0.01}});
  check_trained(away);
  CHECK(away.evicted.at(WorkerId(1)) == 1);
}

TEST_CASE("silence in one direction delays those who wait, and is noticed by the scheduler alone") {
  const Told shard = run_with({kWorker1, std::int64_t{5}, 0, plan::Silence{kShard0, 0.02}});
  check_trained(shard);
  CHECK(shard.evicted.empty());
  CHECK(shard.seconds > usual_seconds() + 0.015);
  const Told scheduler = run_with({kWorker1, std::int64_t{5}, 0, plan::Silence{kScheduler, 0.02}});
  check_trained(scheduler);
  CHECK(scheduler.evicted.at(WorkerId(1)) == 1);
}

TEST_CASE("a partition snapshots a worker off, and with it those on its side") {
  const Told told =
      run_with({kWorker1, std::int64_t{5}, 0, plan::Partition{{address_of(WorkerId(2))}, 0.01}});
  check_trained(told);
  CHECK(told.evicted.size() == 2);
  CHECK_FALSE(told.evicted.contains(WorkerId(0)));
}

TEST_CASE("slow links, delays and a slow scheduler cost time and nothing else") {
  const double usual = usual_seconds();
  const auto fault = GENERATE(values<plan::Fault>({
      {kWorker1, 0.0, 0, plan::SlowLink{1e5, 1}},
      {kWorker1, 0.0, 0, plan::Delay{kShard0, 3, 1}},
      {kScheduler, 0.0, 0, plan::Slow{3, 1}},
      {kShard0, 0.0, 0, plan::Slow{3, 1}},
  }));
  const Told told = run_with(fault);
  check_trained(told);
  CHECK(told.evicted.empty());
  CHECK(told.seconds > usual * 1.05);
}

TEST_CASE("a clock that stands still stops timers, and nothing else") {
  const Told told = run_with({kScheduler, 0.0, 0, plan::ClockStops{0.01}});
  check_trained(told);
  CHECK(told.evicted.empty());
}

TEST_CASE("the loss of a shard or of the scheduler ends the run, and is named") {
  for (const auto& [actor, text] :
       {std::pair(
            kShard0,
            "shard 0 ended: fault of the plan: crash for good; its part of the weights is lost"),
        std::pair(kScheduler, "the scheduler ended: fault of the plan: crash for good")}) {
    Simulation simulation(job_of(plan_with({{actor, std::int64_t{3}, 0, plan::Crash{}}})), {});
    CHECK(simulation.run() == "");
    CHECK(simulation.totals().end.reason == msg::RunEnded::Reason::failed);
    CHECK(simulation.totals().end.text == text);
  }
}

TEST_CASE("when a fault happens is drawn from the seed, within its spread") {
  std::set<std::int64_t> iterations;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Plan plan = plan_with({{kWorker1, std::int64_t{5}, 3, plan::Crash{}}});
    plan.seed = seed;
    iterations.insert(std::get<std::int64_t>(job_of(plan)->faults[0].at));
  }
  CHECK(iterations == std::set<std::int64_t>{5, 6, 7, 8});
}

}  // namespace leeway::sim
