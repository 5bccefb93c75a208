// Whole runs in virtual time.
#include "sim/simulator.hpp"

#include <catch2/catch.hpp>
#include <optional>

#include "tests/support/bits.hpp"
#include "tests/support/test_host.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using test::floats_of;
using test::job_of;
using test::same_bits;
using test::tiny_plan;

class Ending final : public Audience {
 public:
  void ended(const RunTotals& totals) override { totals_ = totals; }
  const std::optional<RunTotals>& totals() const { return totals_; }

 private:
  std::optional<RunTotals> totals_;
};

struct Outcome {
  RunTotals totals;
  Instant end;
  std::uint64_t protocol = 0, numeric = 0;
  std::vector<Trace::Step> steps;
};

Outcome simulate(const Plan& plan, const World& world = {}, bool keep_trace = false) {
  const auto job = job_of(plan);
  Ending ending;
  Simulator simulator(
      {.seed = plan.seed, .world = world, .stragglers = plan.stragglers, .keep_trace = keep_trace});
  simulator.add(kMonitor, std::make_shared<Monitor>(job, std::vector<Audience*>{&ending}));
  simulator.add(kScheduler, std::make_shared<Scheduler>(job));
  for (std::uint32_t i = 0; i < plan.shards; ++i)
    simulator.add(address_of(ShardId(i)), std::make_shared<Shard>(job, ShardId(i)));
  for (std::uint32_t i = 0; i < plan.workers; ++i)
    simulator.add(address_of(WorkerId(i)), std::make_shared<Worker>(job, WorkerId(i)));
  simulator.start();
  while (!ending.totals()) {
    REQUIRE(simulator.step());
    REQUIRE(simulator.idle() < seconds(100));
  }
  const Trace& trace = simulator.trace();
  return {*ending.totals(), simulator.now(), trace.protocol(), trace.numeric(), trace.kept()};
}

/// Work that takes a millisecond on a core.
class Millisecond final : public Work {
 public:
  int parts() const override { return 1; }
  Cost cost(int) const override { return {1'000'000, 0}; }
  void run(int) override {}
};

/// Computes once, and notes when it was done.
class Computer final : public Role {
 public:
  void on_start(Outbox& out) override { out.compute(std::make_shared<Millisecond>()); }
  void on_message(Address, const Message&, Outbox&) override {
    throw std::runtime_error("told something");
  }
  void on_part(Work&, int, Outbox& out) override { done = out.now(); }
  Instant done;
};

class Watcher final : public Role {
 public:
  explicit Watcher(Address watched) : watched_(watched) {}
  void on_start(Outbox& out) override { out.watch(watched_); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_down(Address actor, const std::string& reason, Outbox& out) override {
    told = actor;
    why = reason;
    when = out.now();
  }
  Address told;
  std::string why;
  Instant when;

 private:
  Address watched_;
};

World exact_world() {
  World world;
  world.flops_per_second = 1e9;
  world.noise = 0;
  world.jitter = 0;
  return world;
}

Instant last_of_two(World::Nodes nodes, std::uint32_t cores) {
  World world = exact_world();
  world.nodes = nodes;
  world.cores = cores;
  Simulator simulator({.world = world});
  const auto a = std::make_shared<Computer>(), b = std::make_shared<Computer>();
  simulator.add(address_of(WorkerId(0)), a);
  simulator.add(address_of(WorkerId(1)), b);
  simulator.start();
  while (simulator.step()) {
  }
  return std::max(a->done, b->done);
}

}  // namespace

TEST_CASE("a seed gives the same run, event by event; another seed another") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Ssp{2};
  const auto first = simulate(plan, {}, true), again = simulate(plan, {}, true);
  REQUIRE(first.steps.size() > 100);
  CHECK(first.steps == again.steps);
  CHECK(same_bits(floats_of(first.totals.weights), floats_of(again.totals.weights)));
  plan.seed = 2;
  const auto other = simulate(plan, {}, true);
  CHECK(other.protocol != first.protocol);
  CHECK(other.numeric != first.numeric);
}

TEST_CASE("under bsp the world changes the time, and not the weights") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  const auto usual = simulate(plan);
  World slow;
  slow.latency = milliseconds(5);
  slow.noise = 0.5;
  plan.stragglers = {{.worker = 1, .factor = 3}};
  const auto slower = simulate(plan, slow);
  CHECK(slower.end > usual.end);
  CHECK(same_bits(floats_of(usual.totals.weights), floats_of(slower.totals.weights)));
  plan.stragglers.clear();
  const RunTotals untimed = test::TestHost(job_of(plan), 1).run();
  CHECK(same_bits(floats_of(usual.totals.weights), floats_of(untimed.weights)));
}

TEST_CASE("slow spells that come to all in turn cost bsp more time than ssp") {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{600, 20, plan::Clusters{3, 4, 3}};
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker)
    plan.stragglers.push_back({.worker = worker, .factor = 10, .share = 0.2, .burst = 2});
  World world = exact_world();
  world.flops_per_second = 1e6;  // computing outweighs the network
  plan.consistency = plan::Bsp{};
  const auto barrier = simulate(plan, world);
  plan.consistency = plan::Ssp{4};
  const auto leeway = simulate(plan, world);
  CHECK(leeway.end.ns < barrier.end.ns * 9 / 10);
}

TEST_CASE("computations share the cores of their node") {
  CHECK(last_of_two(World::Nodes::one, 1) == Instant{} + milliseconds(2));
  CHECK(last_of_two(World::Nodes::one, 2) == Instant{} + milliseconds(1));
  CHECK(last_of_two(World::Nodes::one_each, 1) == Instant{} + milliseconds(1));
}

TEST_CASE("an actor that throws ends, and its watchers are told when it is noticed") {
  World world = exact_world();
  world.detection = milliseconds(30);
  Simulator simulator({.world = world});
  const Address fragile = address_of(WorkerId(0));
  const auto watcher = std::make_shared<Watcher>(fragile);
  simulator.add(fragile, std::make_shared<Computer>());
  simulator.add(address_of(ShardId(0)), watcher);
  simulator.start();
  simulator.send(fragile, Message());
  while (simulator.step()) {
  }
  CHECK(watcher->told == fragile);
  CHECK(watcher->why == "told something");
  CHECK(watcher->when >= Instant{} + milliseconds(30));
  CHECK(simulator.end_reason(fragile) == "told something");
}

TEST_CASE("a worker that is killed is evicted, and all samples are trained") {
  Plan plan = tiny_plan();
  plan.faults = {{.worker = 2, .iteration = 1, .kind = plan::Fault::Kind::killed}};
  const auto outcome = simulate(plan);
  CHECK(outcome.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(outcome.totals.end.samples_trained == 120);
  CHECK_FALSE(outcome.totals.workers[2].end.empty());
}

}  // namespace leeway::sim
