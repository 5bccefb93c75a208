// The effect of each fault on a run. The protocol survives all of them.
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

/// About a millisecond per iteration, and twenty iterations per worker.
Plan plan_with(std::vector<plan::Fault> faults) {
  Plan plan = tiny_plan();
  plan.simulated = plan::World{.speed = 3e-3, .noise = 0, .jitter = 0, .detection_ms = 5};
  plan.faults = std::move(faults);
  return plan;
}

struct Observed {
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

Observed run(const Plan& plan) {
  Observed observed;
  Simulation simulation(job_of(plan), {},
                        {.on_event = [&](Address actor, Instant, const Event& event) {
                          ++observed.events[{actor, event.index()}];
                          if (const auto* evicted = event.as<event::Evicted>())
                            ++observed.evicted[evicted->worker];
                        }});
  REQUIRE(simulation.run() == "");
  observed.totals = simulation.totals();
  observed.seconds = (simulation.host().now() - Instant{}).seconds();
  return observed;
}

Observed run_with(plan::Fault fault) {
  return run(plan_with({std::move(fault)}));
}

double usual_seconds() {
  return run(plan_with({})).seconds;
}

void check_trained(const Observed& observed) {
  CHECK(observed.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(observed.totals.end.samples_trained == 2 * 60);
}

}  // namespace

TEST_CASE("a crashed worker is evicted, and trains again after a restart") {
  const Observed gone = run_with({kWorker1, std::int64_t{5}, 0, plan::Crash{}});
  check_trained(gone);
  CHECK(gone.evicted.at(WorkerId(1)) == 1);
  CHECK(gone.count<event::StepFinished>(kWorker1) <= 6);
  const Observed back = run_with({kWorker1, std::int64_t{5}, 0, plan::Crash{0.002}});
  check_trained(back);
  CHECK(back.evicted.at(WorkerId(1)) == 1);
  CHECK(back.count<event::StepFinished>(kWorker1) > 8);
}

TEST_CASE("the residual of a worker that ends is counted as lost") {
  Plan plan = plan_with({{kWorker1, std::int64_t{5}, 0, plan::Crash{0.002}}});
  CHECK(run(plan).totals.end.lost_residuals == 0);
  plan.compress.push = plan::Int8{};
  CHECK(run(plan).totals.end.lost_residuals == 1);
  plan.faults.clear();
  CHECK(run(plan).totals.end.lost_residuals == 0);
}

TEST_CASE("no worker waits for one that joins late, and it trains from then on") {
  const double usual = usual_seconds();
  const Observed observed = run_with({kWorker1, usual / 2, 0, plan::Joins{}});
  check_trained(observed);
  CHECK(observed.evicted.empty());
  const int late = observed.count<event::StepFinished>(kWorker1);
  CHECK(late >= 3);
  CHECK(late < observed.count<event::StepFinished>(address_of(WorkerId(0))) - 4);
}

TEST_CASE("a leaving worker finishes its iteration, and the others train the rest") {
  const Observed observed = run_with({kWorker1, std::int64_t{5}, 0, plan::Leaves{}});
  check_trained(observed);
  CHECK(observed.evicted.empty());
  CHECK(observed.totals.end.partial_pushes == 0);
  CHECK(observed.count<event::Left>(kScheduler) == 1);
  const int steps = observed.count<event::StepStarted>(kWorker1);
  CHECK(steps >= 6);
  CHECK(steps <= 7);
  CHECK(observed.count<event::StepFinished>(kWorker1) == steps);
}

TEST_CASE("a straggler that leaves under backup finishes its iteration and stops") {
  Plan plan = plan_with({{kWorker1, std::int64_t{5}, 0, plan::Leaves{}}});
  plan.consistency = plan::Backup{1};
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{3}}};
  for (plan.seed = 1; plan.seed <= 10; ++plan.seed) {
    INFO("seed " << plan.seed);
    const Observed observed = run(plan);
    check_trained(observed);
    CHECK(observed.totals.end.partial_pushes == 0);
    CHECK(observed.count<event::Left>(kScheduler) == 1);
    CHECK(observed.count<event::StepFinished>(kWorker1) ==
          observed.count<event::StepStarted>(kWorker1));
  }
}

TEST_CASE("the run fails when all workers have left, unless another will join") {
  std::vector<plan::Fault> faults;
  for (const std::uint32_t worker : {0u, 1u})
    faults.push_back({address_of(WorkerId(worker)), std::int64_t{5}, 0, plan::Leaves{}});
  const Address last = address_of(WorkerId(2));
  SECTION("no worker will join") {
    faults.push_back({last, std::int64_t{5}, 0, plan::Leaves{}});
    const Observed observed = run(plan_with(faults));
    CHECK(observed.totals.end.reason == msg::RunEnded::Reason::failed);
    CHECK(observed.totals.end.text.find("no worker is left") == 0);
    CHECK_FALSE(observed.totals.weights.empty());
  }
  SECTION("one worker will join") {
    faults.push_back({last, 1.0, 0, plan::Joins{}});
    const Observed observed = run(plan_with(faults));
    check_trained(observed);
    CHECK(observed.seconds > 1.0);
  }
}

TEST_CASE("a worker that is asked to leave while it is cut off leaves after it reconnects") {
  // The Stop is lost with the link, and repeated whether or not the worker is evicted.
  const double broken = GENERATE(0.003, 0.02);
  const Observed observed =
      run(plan_with({{kWorker1, std::int64_t{5}, 0, plan::Breaks{kScheduler, broken}},
                     {kWorker1, std::int64_t{5}, 0, plan::Leaves{}}}));
  check_trained(observed);
  CHECK(observed.evicted.size() == (broken > 0.01 ? 1 : 0));
  CHECK(observed.count<event::Left>(kScheduler) >= 1);
  CHECK(observed.count<event::StepFinished>(kWorker1) < 15);
}

TEST_CASE("a frozen worker is evicted after the detection time, and rejoins") {
  const Observed brief = run_with({kWorker1, std::int64_t{5}, 0, plan::Freeze{0.004}});
  check_trained(brief);
  CHECK(brief.evicted.empty());
  CHECK(brief.seconds > usual_seconds());
  const Observed lasting = run_with({kWorker1, std::int64_t{5}, 0, plan::Freeze{0.01}});
  check_trained(lasting);
  CHECK(lasting.evicted.at(WorkerId(1)) == 1);
  CHECK(lasting.count<event::Admitted>(kShard0) == 4);
}

TEST_CASE("messages lost with a connection are sent again") {
  const double usual = usual_seconds();
  for (const Address peer : {kShard0, kScheduler}) {
    int repeated = 0;
    for (int i = 0; i < 20; ++i) {
      Plan plan = plan_with({{kWorker1, usual * i / 20, 0, plan::Breaks{peer, 0.001}}});
      plan.simulated->latency_us = 300;
      const Observed observed = run(plan);
      check_trained(observed);
      CHECK(observed.evicted.empty());
      repeated += observed.repeated();
    }
    CHECK((repeated > 0) == (peer == kShard0));
  }
  const Observed away = run_with({kWorker1, std::int64_t{5}, 0, plan::Breaks{kScheduler, 0.01}});
  check_trained(away);
  CHECK(away.evicted.at(WorkerId(1)) == 1);
}

TEST_CASE("silence in one direction causes delays, and an eviction only towards the scheduler") {
  const Observed shard = run_with({kWorker1, std::int64_t{5}, 0, plan::Silence{kShard0, 0.02}});
  check_trained(shard);
  CHECK(shard.evicted.empty());
  CHECK(shard.seconds > usual_seconds() + 0.015);
  const Observed scheduler =
      run_with({kWorker1, std::int64_t{5}, 0, plan::Silence{kScheduler, 0.02}});
  check_trained(scheduler);
  CHECK(scheduler.evicted.at(WorkerId(1)) == 1);
}

TEST_CASE("a partition cuts off all workers on its side") {
  const Observed observed =
      run_with({kWorker1, std::int64_t{5}, 0, plan::Partition{{address_of(WorkerId(2))}, 0.01}});
  check_trained(observed);
  CHECK(observed.evicted.size() == 2);
  CHECK_FALSE(observed.evicted.contains(WorkerId(0)));
}

TEST_CASE("slow links, delays and a slow scheduler cost only time") {
  const double usual = usual_seconds();
  const auto fault = GENERATE(values<plan::Fault>({
      {kWorker1, 0.0, 0, plan::SlowLink{1e5, 1}},
      {kWorker1, 0.0, 0, plan::Delay{kShard0, 3, 1}},
      {kScheduler, 0.0, 0, plan::Slow{3, 1}},
      {kShard0, 0.0, 0, plan::Slow{3, 1}},
  }));
  const Observed observed = run_with(fault);
  check_trained(observed);
  CHECK(observed.evicted.empty());
  CHECK(observed.seconds > usual * 1.05);
}

TEST_CASE("a stopped clock stops only timers") {
  const Observed observed = run_with({kScheduler, 0.0, 0, plan::ClockStops{0.01}});
  check_trained(observed);
  CHECK(observed.evicted.empty());
}

TEST_CASE("the loss of a shard or the scheduler ends the run, and the error names it") {
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

TEST_CASE("the seed determines the time of a fault, within its spread") {
  std::set<std::int64_t> iterations;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Plan plan = plan_with({{kWorker1, std::int64_t{5}, 3, plan::Crash{}}});
    plan.seed = seed;
    iterations.insert(std::get<std::int64_t>(job_of(plan)->faults[0].at));
  }
  CHECK(iterations == std::set<std::int64_t>{5, 6, 7, 8});
}

}  // namespace leeway::sim
