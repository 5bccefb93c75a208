// Threads of simulated nodes: the time of messages, and the sharing of cores.
#include <catch2/catch.hpp>
#include <fstream>
#include <optional>

#include "sim/shared_cores.hpp"
#include "sim/simulation.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

Instant at(Duration time) {
  return Instant{} + time;
}

/// Runs one thread for each amount of work, and returns the times at which they finish.
std::vector<Duration> ends(SharedCores cores, const std::vector<Duration>& work) {
  std::vector<Duration> ends(work.size());
  for (const Duration time : work) cores.work(cores.add_thread(), time, Instant{});
  while (const auto next = cores.next()) {
    while (const auto thread = cores.finished(*next)) {
      ends[*thread] = *next - Instant{};
      cores.sleep(*thread, *next);
    }
  }
  return ends;
}

/// Work of one part that takes `micros` in world_of_cores().
class Micros final : public Work {
 public:
  explicit Micros(std::int64_t micros) : micros_(micros) {}
  int parts() const override { return 1; }
  Cost cost(int) const override { return {micros_ * 1000, 0}; }
  void run(int) override {}

 private:
  std::int64_t micros_;
};

/// Records the times of messages and timers. Computes at the start and for each message.
class Recorder final : public Role {
 public:
  explicit Recorder(std::int64_t at_start = 0, std::int64_t by_message = 0)
      : at_start_(at_start), by_message_(by_message) {}
  void on_start(Outbox& out) override {
    if (at_start_ > 0) out.compute(std::make_shared<Micros>(at_start_));
  }
  void on_message(Address, const Message&, Outbox& out) override {
    received.push_back(out.now());
    if (by_message_ > 0) out.compute(std::make_shared<Micros>(by_message_));
  }
  void on_timer(TimerToken, Outbox& out) override { received.push_back(out.now()); }
  void on_part(Work&, int, Outbox& out) override { computed.push_back(out.now()); }

  std::vector<Instant> received, computed;

 private:
  std::int64_t at_start_, by_message_;
};

/// Sets a timer and records when it fires.
class TimerRole final : public Role {
 public:
  void on_start(Outbox& out) override { out.after(milliseconds(1), 0); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_timer(TimerToken, Outbox& out) override { fired = out.now(); }
  Instant fired;
};

World world_of_cores(std::uint32_t cores = 1) {
  World world;
  world.nodes = World::Nodes::one;
  world.cores = cores;
  world.flops_per_second = 1e9;
  world.noise = 0;
  world.jitter = 0;
  world.local_latency = microseconds(5);
  world.message = microseconds(10);
  return world;
}

void run(Simulator& simulator) {
  simulator.start();
  while (simulator.step()) {
  }
}

}  // namespace

TEST_CASE("at most one thread per core works, and the others follow in order of arrival") {
  using V = std::vector<Duration>;
  const Duration ms = milliseconds(1);
  CHECK(ends(SharedCores(1, {}, 0), {ms, ms, ms}) == V{ms, milliseconds(2), milliseconds(3)});
  CHECK(ends(SharedCores(2, {}, 0), {ms, ms, ms}) == V{ms, ms, milliseconds(2)});
}

TEST_CASE("a thread gives up its core at the end of its slice") {
  using V = std::vector<Duration>;
  const auto cores = SharedCores(1, milliseconds(2), 0);
  CHECK(ends(cores, {milliseconds(5), milliseconds(3)}) == V{milliseconds(8), milliseconds(7)});
  CHECK(ends(cores, {milliseconds(5)}) == V{milliseconds(5)});
}

TEST_CASE(
    "a thread with much less core time preempts, and one with about as much waits for a slice") {
  SharedCores cores(1, milliseconds(2), 0);
  const auto busy = cores.add_thread(), other = cores.add_thread();
  cores.work(busy, milliseconds(10), Instant{});
  cores.work(other, milliseconds(1), at(milliseconds(3)));
  CHECK(cores.next() == at(milliseconds(4)));
  CHECK(cores.finished(at(milliseconds(4))) == std::optional(other));
  cores.sleep(other, at(milliseconds(4)));
  // The sleeper makes up for one slice: it has had 2 ms of core time, and the busy thread 4 ms.
  cores.work(other, microseconds(3500), at(milliseconds(5)));
  CHECK(cores.next() == at(milliseconds(7)));
  CHECK(!cores.finished(at(milliseconds(7))));  // the end of its slice; both have had 4 ms
  CHECK(!cores.finished(at(milliseconds(9))));
  CHECK(cores.finished(at(microseconds(10500))) == std::optional(other));
  cores.sleep(other, at(microseconds(10500)));
  cores.work(other, milliseconds(1), at(microseconds(11000)));  // 5.5 ms against 6.5 ms
  CHECK(cores.next() == at(microseconds(12500)));
  CHECK(!cores.finished(at(microseconds(12500))));
  CHECK(cores.finished(at(microseconds(13500))) == std::optional(other));
}

TEST_CASE("busy cores slow each other down by their contention") {
  using V = std::vector<Duration>;
  CHECK(ends(SharedCores(2, {}, 0.5), {milliseconds(2), milliseconds(2)}) ==
        V{milliseconds(3), milliseconds(3)});
  CHECK(ends(SharedCores(2, {}, 0.5), {milliseconds(2), milliseconds(4)}) ==
        V{milliseconds(3), milliseconds(5)});
  CHECK(ends(SharedCores(3, {}, 0.5), {milliseconds(4), milliseconds(4)}) ==
        V{milliseconds(5), milliseconds(5)});
}

TEST_CASE("an actor handles messages one after the other") {
  Simulator simulator({.world = world_of_cores()});
  const auto actor = std::make_shared<Recorder>();
  simulator.add(address_of(ShardId(0)), actor);
  for (int i = 0; i < 3; ++i) simulator.send(address_of(ShardId(0)), Message());
  run(simulator);
  REQUIRE(actor->received.size() == 3);
  CHECK(actor->received[0] == at(microseconds(15)));
  CHECK(actor->received[1] == at(microseconds(25)));
  CHECK(actor->received[2] == at(microseconds(35)));
}

TEST_CASE("work after a long rest takes longer") {
  World world = world_of_cores();
  world.cold = 1;
  Simulator simulator({.world = world});
  const auto actor = std::make_shared<Recorder>();
  const Address shard = address_of(ShardId(0));
  simulator.add(shard, actor);
  simulator.send(shard, Message());
  for (const Instant later : {at(milliseconds(100)), at(milliseconds(100) + microseconds(6))})
    simulator.at(later, [&] { simulator.send(shard, Message()); });
  run(simulator);
  REQUIRE(actor->received.size() == 3);
  CHECK(actor->received[0] == at(microseconds(15)));
  const Duration cold = actor->received[1] - at(milliseconds(100) + microseconds(5));
  const Duration warmer = actor->received[2] - actor->received[1];
  CHECK(cold > microseconds(19));
  CHECK(cold < microseconds(20));
  CHECK(warmer < cold);
}

TEST_CASE("messages to two actors use two cores or share one") {
  for (const std::uint32_t cores : {1u, 2u}) {
    Simulator simulator({.world = world_of_cores(cores)});
    const auto a = std::make_shared<Recorder>(), b = std::make_shared<Recorder>();
    simulator.add(address_of(WorkerId(0)), a);
    simulator.add(address_of(WorkerId(1)), b);
    simulator.send(address_of(WorkerId(0)), Message());
    simulator.send(address_of(WorkerId(1)), Message());
    run(simulator);
    CHECK(a->received.at(0) == at(microseconds(15)));
    CHECK(b->received.at(0) == at(microseconds(cores == 2 ? 15 : 25)));
  }
}

TEST_CASE("a worker's computation keeps the core from shards") {
  Simulator simulator({.world = world_of_cores()});
  const auto worker = std::make_shared<Recorder>(1000), shard = std::make_shared<Recorder>();
  simulator.add(address_of(WorkerId(0)), worker);
  simulator.add(address_of(ShardId(0)), shard);
  simulator.start();
  simulator.send(address_of(ShardId(0)), Message());
  while (simulator.step()) {
  }
  CHECK(worker->computed.at(0) == at(microseconds(1010)));
  CHECK(shard->received.at(0) == at(microseconds(1020)));
}

TEST_CASE("a shard does small work before its next message, and long work concurrently") {
  constexpr std::int64_t kSmall = 100, kLong = 20'000;
  for (const std::int64_t micros : {kSmall, kLong}) {
    Simulator simulator({.world = world_of_cores(2)});
    const auto shard = std::make_shared<Recorder>(0, micros);
    simulator.add(address_of(ShardId(0)), shard);
    simulator.send(address_of(ShardId(0)), Message());
    simulator.send(address_of(ShardId(0)), Message());
    run(simulator);
    CHECK(shard->received.at(1) == at(microseconds(micros == kSmall ? 15 + 100 + 10 : 25)));
  }
}

TEST_CASE("a pool has as many threads as cores, however many actors share it") {
  World world = world_of_cores(2);
  Simulator simulator({.world = world});
  std::vector<std::shared_ptr<Recorder>> shards;
  for (std::uint32_t i = 0; i < 3; ++i) {
    shards.push_back(std::make_shared<Recorder>(0, 100));
    simulator.add(address_of(ShardId(i)), shards.back());
    simulator.send(address_of(ShardId(i)), Message());
  }
  run(simulator);
  CHECK(shards[0]->computed.at(0) == at(microseconds(115)));
  CHECK(shards[1]->computed.at(0) == at(microseconds(115)));
  CHECK(shards[2]->received.at(0) == at(microseconds(125)));
}

TEST_CASE("a timer fires late by the world's setting") {
  World world = world_of_cores();
  world.timer = microseconds(60);
  Simulator simulator({.world = world});
  const auto role = std::make_shared<TimerRole>();
  simulator.add(address_of(WorkerId(0)), role);
  run(simulator);
  CHECK(role->fired == at(microseconds(1000 + 60 + 10)));
}

TEST_CASE("a frozen actor handles its messages after the thaw") {
  Simulator simulator({.world = world_of_cores()});
  const Address worker = address_of(WorkerId(0));
  const auto actor = std::make_shared<Recorder>();
  simulator.add(worker, actor);
  simulator.send(worker, Message());
  simulator.send(worker, Message());
  simulator.at(at(microseconds(12)), [&] { simulator.freeze(worker); });
  simulator.at(at(milliseconds(1)), [&] { simulator.thaw(worker); });
  run(simulator);
  REQUIRE(actor->received.size() == 2);
  CHECK(actor->received[0] == at(microseconds(1010)));
  CHECK(actor->received[1] == at(microseconds(1020)));
}

TEST_CASE("a run on threads is correct, repeatable and equal to one without threads under bsp") {
  Plan plan = test::tiny_plan();
  plan.consistency = plan::Bsp{};
  const auto simulate = [&] {
    Simulation simulation(test::job_of(plan), {}, {.trace = {.keep = true}});
    REQUIRE(simulation.run() == "");
    return std::pair(simulation.host().trace().kept(),
                     test::floats_of(simulation.totals().weights));
  };
  plan.simulated = plan::World{};
  const auto nodes = simulate();
  plan.simulated = plan::World{.nodes = plan::World::Nodes::one,
                               .cores = 2,
                               .message_us = 5,
                               .timer_us = 50,
                               .slice_us = 100,
                               .contention = 0.2,
                               .cold = 0.5};
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{3}}};
  const auto threads = simulate(), again = simulate();
  CHECK(threads.first == again.first);
  CHECK(threads.first != nodes.first);
  CHECK(test::same_bits(nodes.second, threads.second));
}

}  // namespace leeway::sim
