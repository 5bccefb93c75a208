// Whole runs in virtual time.
#include "sim/simulator.hpp"

#include <catch2/catch.hpp>
#include <optional>

#include "sim/checkers/catalogue.hpp"
#include "sim/determinism.hpp"
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
  Trace trace;
};

void add_roles(Simulator& simulator, const std::shared_ptr<const Job>& job, Audience& audience) {
  simulator.add(kMonitor, std::make_shared<Monitor>(job, std::vector<Audience*>{&audience}));
  simulator.add(kScheduler, std::make_shared<Scheduler>(job));
  for (std::uint32_t i = 0; i < job->plan.shards; ++i)
    simulator.add(address_of(ShardId(i)), std::make_shared<Shard>(job, ShardId(i)));
  for (std::uint32_t i = 0; i < job->plan.workers; ++i)
    simulator.add(address_of(WorkerId(i)), make_participant(job, WorkerId(i)));
}

/// Simulates a whole run under all checkers.
Outcome simulate(const Plan& plan, const World& world = {}, Trace::Options trace = {},
                 std::vector<std::shared_ptr<Observer>> more = {}) {
  const auto job = job_of(plan);
  Ending ending;
  std::vector<std::shared_ptr<Observer>> observers;
  for (const auto& checker : all_checkers(job)) observers.push_back(checker);
  observers.insert(observers.end(), more.begin(), more.end());
  Simulator simulator({.seed = plan.seed,
                       .world = world,
                       .stragglers = plan.stragglers,
                       .trace = trace,
                       .observers = observers});
  add_roles(simulator, job, ending);
  simulator.start();
  while (!ending.totals()) {
    const bool stepped = simulator.step();  // a Violation goes to the caller
    REQUIRE(stepped);
    REQUIRE(simulator.idle() < seconds(100));
  }
  simulator.conclude(*ending.totals());
  return {*ending.totals(), simulator.now(), simulator.trace()};
}

/// Stages and micro-batches of different sizes, on slow links.
Plan slow_link_plan(bool cost_only) {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{50}, plan::Relu{}, plan::Linear{6}, plan::Tanh{}, plan::Linear{3}};
  plan.pipeline = {.stages = 3, .split = "0-1,2-3,4"};
  plan.batch = 7;
  plan.micro_batches = 4;
  plan.simulated = plan::World{.noise = 0, .jitter = 0, .link = 1e-6, .cost_only = cost_only};
  return plan;
}

/// Work that takes a millisecond on a core.
class Millisecond final : public Work {
 public:
  int parts() const override { return 1; }
  Cost cost(int) const override { return {1'000'000, 0}; }
  void run(int) override {}
};

/// Computes once and records the time of completion.
class Computer final : public Role {
 public:
  void on_start(Outbox& out) override { out.compute(std::make_shared<Millisecond>()); }
  void on_message(Address, const Message&, Outbox&) override {
    throw std::runtime_error("received a message");
  }
  void on_part(Work&, int, Outbox& out) override { done = out.now(); }
  Instant done;
};

class Watcher final : public Role {
 public:
  explicit Watcher(Address watched) : watched_(watched) {}
  void on_start(Outbox& out) override { out.watch(watched_); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_down(Address actor, const EndReason& reason, Outbox& out) override {
    ended = actor;
    why = reason.text;
    when = out.now();
  }
  Address ended;
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

/// When both worker 0 and `other` have computed.
Instant last_of_two(World::Nodes nodes, std::uint32_t cores,
                    Address other = address_of(WorkerId(1))) {
  World world = exact_world();
  world.nodes = nodes;
  world.cores = cores;
  Simulator simulator({.world = world});
  const auto a = std::make_shared<Computer>(), b = std::make_shared<Computer>();
  simulator.add(address_of(WorkerId(0)), a);
  simulator.add(other, b);
  simulator.start();
  while (simulator.step()) {
  }
  return std::max(a->done, b->done);
}

}  // namespace

TEST_CASE("the same seed gives the same run, event by event, and another seed another run") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Ssp{2};
  const auto first = simulate(plan, {}, {.keep = true}), again = simulate(plan, {}, {.keep = true});
  REQUIRE(first.trace.steps() > 100);
  CHECK(first.trace.kept() == again.trace.kept());
  CHECK(same_bits(floats_of(first.totals.weights), floats_of(again.totals.weights)));
  plan.seed = 2;
  const auto other = simulate(plan, {}, {.keep = true});
  CHECK(other.trace.protocol() != first.trace.protocol());
  CHECK(other.trace.numeric() != first.trace.numeric());
}

TEST_CASE("under bsp the world changes the time but not the weights") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  const auto usual = simulate(plan);
  World slow;
  slow.latency = milliseconds(5);
  slow.noise = 0.5;
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{3}}};
  const auto slower = simulate(plan, slow);
  CHECK(slower.end > usual.end);
  CHECK(same_bits(floats_of(usual.totals.weights), floats_of(slower.totals.weights)));
  plan.stragglers.clear();
  const RunTotals untimed = test::TestHost(job_of(plan), 1).run();
  CHECK(same_bits(floats_of(usual.totals.weights), floats_of(untimed.weights)));
}

TEST_CASE("a pipeline that simulates only costs takes as long as one that trains") {
  const auto time = [](bool cost_only) {
    const Plan plan = slow_link_plan(cost_only);
    return (simulate(plan, World(*plan.simulated)).end - Instant{}).seconds();
  };
  CHECK(time(true) == time(false));
}

TEST_CASE("the bytes between stages are counted, and what they are without a codec") {
  Plan plan = slow_link_plan(false);
  const auto plain = simulate(plan, World(*plan.simulated)).totals.last;
  CHECK(plain.stage_bytes > 0);
  CHECK(plain.stage_bytes == plain.plain_stage_bytes);
  plan.compress.activations = plan.compress.activation_gradients = plan::Bf16{};
  const auto encoded = simulate(plan, World(*plan.simulated)).totals.last;
  CHECK(encoded.plain_stage_bytes == plain.plain_stage_bytes);
  CHECK(2 * encoded.stage_bytes == plain.stage_bytes);
}

TEST_CASE("bursts of all workers in turn cost bsp more time than ssp") {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{600, 20, plan::Clusters{3, 4, 3}};
  plan.stragglers = {{.all = true, .kind = plan::Bursts{10, 0.2, 2}}};
  World world = exact_world();
  world.flops_per_second = 1e6;  // computing outweighs the network
  plan.consistency = plan::Bsp{};
  const auto barrier = simulate(plan, world);
  plan.consistency = plan::Ssp{4};
  const auto leeway = simulate(plan, world);
  CHECK(leeway.end.ns < barrier.end.ns * 9 / 10);
}

TEST_CASE("one slow worker costs bsp its whole delay, and backup(1) almost nothing") {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{600, 20, plan::Clusters{3, 4, 3}};
  World world = exact_world();
  world.flops_per_second = 2e5;  // computing outweighs the network
  const auto seconds_of = [&](const plan::Consistency& policy) {
    plan.consistency = policy;
    const auto totals = simulate(plan, world).totals;
    CHECK(totals.end.samples_trained == 1200);
    CHECK((totals.end.dropped_pushes > 100) == std::holds_alternative<plan::Backup>(policy));
    return (totals.last.now - Instant{}).seconds();
  };
  const double three = seconds_of(plan::Bsp{});
  plan.workers = 4;
  plan.stragglers = {{.worker = 0, .kind = plan::ConstantFactor{10}}};
  const double barrier = seconds_of(plan::Bsp{});
  const double backup = seconds_of(plan::Backup{1});
  CHECK(backup < 1.2 * three);  // the time of three workers without the slow one
  CHECK(barrier > 5 * backup);
}

TEST_CASE("each iteration pauses once, however many parts it has") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.stop = {.iterations = 3 * plan.workers};
  const auto usual = simulate(plan, exact_world());
  plan.stragglers = {{.all = true, .kind = plan::Pauses{5000, std::uint32_t{1}}}};
  const auto paused = simulate(plan, exact_world());
  CHECK((paused.end - usual.end).seconds() == Approx(3 * 5).epsilon(0.01));
}

TEST_CASE("each iteration of a stage pauses once, however many micro-batches it has") {
  Plan plan = tiny_plan();
  plan.workers = plan.pipeline.stages = 2;
  plan.batch = 8;
  plan.micro_batches = 4;
  plan.consistency = plan::Bsp{};
  plan.stop = {.iterations = 3};
  const auto usual = simulate(plan, exact_world());
  plan.stragglers = {{.worker = 1, .kind = plan::Pauses{5000, std::uint32_t{1}}}};
  const auto paused = simulate(plan, exact_world());
  const auto iterations = static_cast<double>(paused.totals.workers[1].iterations);
  REQUIRE(iterations > 0);
  CHECK((paused.end - usual.end).seconds() == Approx(iterations * 5).epsilon(0.01));
}

TEST_CASE("computations share the cores of their node") {
  CHECK(last_of_two(World::Nodes::one, 1) == Instant{} + milliseconds(2));
  CHECK(last_of_two(World::Nodes::one, 2) == Instant{} + milliseconds(1));
  CHECK(last_of_two(World::Nodes::one_each, 1) == Instant{} + milliseconds(1));
  CHECK(last_of_two(World::Nodes::pairs, 1) == Instant{} + milliseconds(1));
  CHECK(last_of_two(World::Nodes::pairs, 1, address_of(ShardId(1))) == Instant{} + milliseconds(1));
  CHECK(last_of_two(World::Nodes::pairs, 1, address_of(ShardId(0))) == Instant{} + milliseconds(2));
}

TEST_CASE("an actor that throws ends, and its watchers notice after the detection time") {
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
  CHECK(watcher->ended == fragile);
  CHECK(watcher->why == "received a message");
  CHECK(watcher->when >= Instant{} + milliseconds(30));
  CHECK(simulator.end_reason(fragile)->text == "received a message");
}

TEST_CASE("a killed worker is evicted, and all samples are trained") {
  Plan plan = tiny_plan();
  plan.faults = {{address_of(WorkerId(2)), std::int64_t{1}, 0, plan::Killed{}}};
  const auto outcome = simulate(plan);
  CHECK(outcome.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(outcome.totals.end.samples_trained == 120);
  CHECK_FALSE(outcome.totals.workers[2].end.empty());
}

TEST_CASE("all properties hold under every policy in a slow world") {
  World slow;
  slow.latency = milliseconds(3);
  slow.noise = 0.5;
  slow.jitter = 3;
  Plan plan = tiny_plan();
  plan.evaluate_every = 0.3;
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{5}}};
  plan.faults = {{address_of(WorkerId(2)), std::int64_t{2}, 0, plan::Killed{}}};
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2}),
        plan::Consistency(plan::Asp{}), plan::Consistency(plan::Adaptive{1, 4}),
        plan::Consistency(plan::Backup{1})})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      plan.consistency = policy;
      plan.seed = seed;
      plan.balance = seed % 3 == 0 ? plan::Balance::by_speed : plan::Balance::equal;
      plan.prefetch = seed % 2 == 0 && !job_of(plan)->consistency->by_rounds();
      INFO("seed " << seed);
      const auto outcome = simulate(plan, slow);
      CHECK(outcome.totals.end.samples_trained == 120);
    }
}

TEST_CASE("two runs of a plan do not differ") {
  CHECK_FALSE(compare_runs(
      [](const Trace::Options& trace) { return simulate(tiny_plan(), {}, trace).trace; }));
}

TEST_CASE("a Violation of an observer ends the run, and reports the preceding events") {
  class ThrowingObserver final : public Observer {
   public:
    void on_event(Instant, Address actor, const Event& event) override {
      const auto* moved = event.as<event::ClockMoved>();
      if (moved && moved->clock == Clock(3))
        throw Violation("no clock reaches 3", {actor}, "it did");
    }
  };
  try {
    simulate(tiny_plan(), {}, {}, {std::make_shared<ThrowingObserver>()});
    FAIL("no violation was thrown");
  } catch (const Violation& violation) {
    const std::string text = violation.what();
    CHECK(text.starts_with("violated: no clock reaches 3\n  by:   shard "));
    CHECK(text.find(": push, iteration 2\n") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 23);
  }
}

TEST_CASE("observers see sent and delivered messages, ends of actors and the end of the run") {
  class Counter final : public Observer {
   public:
    void on_sent(Instant, const Letter& letter) override { sent += letter.to() == kScheduler; }
    void on_delivered(Instant, const Letter& letter) override {
      delivered += letter.to() == kScheduler;
    }
    void on_ended(Instant, Address actor) override { dead.push_back(actor); }
    void on_run_ended(const RunTotals&) override { ++ends; }
    int sent = 0, delivered = 0, ends = 0;
    std::vector<Address> dead;
  };
  Plan plan = tiny_plan();
  plan.faults = {{address_of(WorkerId(2)), std::int64_t{1}, 0, plan::Killed{}}};
  const auto counter = std::make_shared<Counter>();
  simulate(plan, {}, {}, {counter});
  CHECK(counter->delivered > 10);
  CHECK(counter->sent >= counter->delivered);
  CHECK(counter->dead == std::vector<Address>{address_of(WorkerId(2))});
  CHECK(counter->ends == 1);
}

TEST_CASE("a report of a deadlock has the states of scheduler and shards") {
  const auto job = job_of(tiny_plan());
  Ending ending;
  Simulator simulator({});
  add_roles(simulator, job, ending);
  simulator.start();
  const std::string text = simulator.who_waits();
  CHECK(text.find("scheduler gathering, worker 0 absent") != std::string::npos);
  CHECK(text.find("; shard 0 min_clock 0; shard 1 min_clock 0") != std::string::npos);
}

TEST_CASE("a restarted worker trains again, before or after its end was noticed") {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{600, 20, plan::Clusters{3, 4, 3}};
  const auto late = GENERATE(false, true);
  World world = exact_world();
  world.flops_per_second = 1e6;  // the run outlasts the restart
  world.detection = milliseconds(5);
  const auto job = job_of(plan);
  const auto checkers = all_checkers(job);
  Ending ending;
  Simulator simulator({.world = world, .observers = {checkers.begin(), checkers.end()}});
  add_roles(simulator, job, ending);
  simulator.start();
  const Address worker = address_of(WorkerId(1));
  const Instant death = Instant{} + milliseconds(20);
  const Instant return_at = death + milliseconds(late ? 30 : 1);
  bool killed = false, back = false;
  while (!ending.totals()) {
    REQUIRE(simulator.step());
    if (!killed && simulator.now() >= death) {
      simulator.kill(worker, "killed by the test");
      killed = true;
    }
    if (killed && !back && simulator.now() >= return_at) {
      simulator.restart(worker, make_participant(job, WorkerId(1), 2));
      back = true;
    }
  }
  simulator.conclude(*ending.totals());
  REQUIRE(back);
  CHECK(ending.totals()->end.reason == msg::RunEnded::Reason::finished);
  CHECK(ending.totals()->end.samples_trained == 1200);
  CHECK_FALSE(simulator.end_reason(worker));  // the worker is alive
  // Iterations after the restart, which was well before the end.
  CHECK(simulator.now() > return_at + milliseconds(20));
  CHECK(ending.totals()->workers[1].iterations > 0);
}

}  // namespace leeway::sim
