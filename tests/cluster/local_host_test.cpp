// The local host: roles on real threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "cluster/local_host.hpp"
#include "core/text.hpp"
#include "leeway.hpp"
#include "tensor/blob_pool.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/images.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/test_host.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/weights.hpp"

namespace leeway::test {
namespace {

const RunOptions kQuiet{.quiet = true};
constexpr Address kShard0 = address_of(ShardId(0));

/// Two roles that send each other a message and count.
class Echo final : public Role {
 public:
  Echo(Address peer, std::promise<void>* done) : peer_(peer), done_(done) {}
  void on_start(Outbox& out) override {
    if (done_) out.send(peer_, encode({.body = msg::Stop{}}));
  }
  void on_message(Address from, const Message& message, Outbox& out) override {
    if (done_ && ++count_ == 1000) return done_->set_value();
    out.send(from, message);
  }

 private:
  Address peer_;
  std::promise<void>* done_;
  int count_ = 0;
};

/// Throws at every message.
class Fragile final : public Role {
 public:
  void on_message(Address, const Message&, Outbox&) override { throw std::runtime_error("broken"); }
};
class Watcher final : public Role {
 public:
  explicit Watcher(std::promise<std::string>* reason) : reason_(reason) {}
  void on_start(Outbox& out) override {
    out.watch(kShard0);
    out.send(kShard0, Message());
  }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_down(Address, const EndReason& reason, Outbox&) override {
    reason_->set_value(reason.text);
  }

 private:
  std::promise<std::string>* reason_;
};

/// Work of many parts, computed while messages arrive.
class Slices final : public Work {
 public:
  int parts() const override { return 50; }
  Cost cost(int) const override { return {1 << 30, 1 << 30}; }
  void run(int part) override {
    in_order &= part == next++;
    CHECK_FALSE(running.exchange(true));
    running = false;
  }
  std::atomic<bool> running{false};
  int next = 0;
  bool in_order = true;
};
class Computer final : public Role {
 public:
  explicit Computer(std::promise<bool>* done) : done_(done) {}
  void on_start(Outbox& out) override { out.compute(work_); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_part(Work&, int part, Outbox&) override {
    if (part != seen_++) work_->in_order = false;
    if (seen_ == work_->parts()) done_->set_value(work_->in_order);
  }

 private:
  std::promise<bool>* done_;
  std::shared_ptr<Slices> work_ = std::make_shared<Slices>();
  int seen_ = 0;
};

/// Emits events until one of them does not leave the host, and then sends a message.
class Talker final : public Role {
 public:
  explicit Talker(const std::atomic<int>* seen) : seen_(seen) {}
  void on_start(Outbox& out) override {
    for (int before = -1; *seen_ != before;) {
      before = *seen_;
      out.emit(event::StepStarted{});
    }
    out.send(kMonitor, Message());
  }
  void on_message(Address, const Message&, Outbox&) override {}

 private:
  const std::atomic<int>* seen_;
};
class SentOut final : public ActorHostEvents {
 public:
  void send_out(Address, Address, Message) override { ++count; }
  void watch_out(Address, Address) override {}
  void on_end(Address, const EndReason&) override {}
  void on_take_over(ShardId) override {}
  std::atomic<int> count{0};
};

}  // namespace

TEST_CASE("messages between actors arrive") {
  std::promise<void> done;
  LocalHost host({});
  host.add(kScheduler, std::make_shared<Echo>(address_of(WorkerId(0)), &done));
  host.add(address_of(WorkerId(0)), std::make_shared<Echo>(kScheduler, nullptr));
  host.start();
  CHECK(done.get_future().wait_for(kPatience) == std::future_status::ready);
}

TEST_CASE("a role that throws ends, and its watcher gets the reason") {
  std::promise<std::string> reason;
  LocalHost host({});
  host.add(kShard0, std::make_shared<Fragile>());
  host.add(kMonitor, std::make_shared<Watcher>(&reason));
  host.start();
  auto future = reason.get_future();
  REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
  CHECK(future.get() == "broken");
  CHECK(host.end_reason(kShard0)->text == "broken");
}

TEST_CASE("an actor of a host that ends sends no message after an event that was not reported") {
  std::atomic<int> seen{0};
  SentOut others;
  {
    LocalHost host({.on_event = [&](Address, Instant, const Event&, std::uint64_t) { ++seen; },
                    .events = &others});
    host.add(kShard0, std::make_shared<Talker>(&seen));
    host.start();
    while (seen < 100) std::this_thread::yield();
  }
  CHECK(others.count == 0);
}

TEST_CASE("parts of a work run in order, one at a time, on own threads and on the pool") {
  for (const Address address : {address_of(WorkerId(0)), kMonitor}) {
    std::promise<bool> done;
    LocalHost host({});
    host.add(address, std::make_shared<Computer>(&done));
    host.start();
    auto future = done.get_future();
    REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
    CHECK(future.get());
  }
}

TEST_CASE(
    "two bsp runs of one seed give equal weights, bit for bit, and equal those of the small test "
    "host") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = 4;
  plan.batch = 3;
  const auto first = run(plan, kQuiet);
  const auto second = run(plan, kQuiet);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(same_bits(weights_of(first), weights_of(second)));
  TestHost host(job_of(plan), 7);
  const auto totals = host.run();
  const std::vector<float> tested = weights_of(*job_of(plan), totals.weights);
  CHECK(same_bits(weights_of(first), tested));
}

TEST_CASE("the staleness bound holds on real threads, and every sample is trained once") {
  for (const std::uint32_t bound : {0u, 1u, 3u}) {
    Plan plan = tiny_plan();
    plan.consistency = plan::Ssp{bound};
    plan.workers = 4;
    plan.stop.epochs = 20;
    plan.stragglers = {{3, false, plan::Bursts{3, 0.3, 5}}, {3, false, plan::ConstantFactor{2}}};
    plan.prefetch = bound > 0;
    const auto result = run(plan, kQuiet);
    REQUIRE(result.ok());
    CHECK(result.max_clock_gap <= bound + 1);
    CHECK(result.samples_trained == 20 * 60);
    CHECK(result.totals.last.malformed == 0);
    CHECK(result.totals.last.refused == 0);
  }
}

TEST_CASE("on real threads, an adaptive bound stays in its range despite a slow worker") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Adaptive{1, 4};
  plan.workers = 4;
  plan.stop.epochs = 40;
  // Much longer than the other workers' iterations, also on a machine under full load.
  plan.stragglers = {{.worker = 3, .kind = plan::Pauses{5, std::uint32_t{1}}}};
  plan.prefetch = GENERATE(false, true);
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.totals.last.staleness > 1);
  CHECK(result.max_clock_gap > 2);
  CHECK(result.max_clock_gap <= 5);
  CHECK(result.samples_trained == 40 * 60);
  CHECK(result.totals.last.malformed == 0);
  CHECK(result.totals.last.refused == 0);
}

TEST_CASE("on real threads, balance by speed gives a slow worker fewer samples") {
  Plan plan = tiny_plan();
  plan.consistency = GENERATE(plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2}));
  plan.data = plan::Synthetic{4000, 20, plan::Clusters{10, 64, 3}};
  plan.model = {plan::Linear{256}, plan::Relu{}, plan::Linear{10}};
  plan.balance = plan::Balance::by_speed;
  plan.batch = 32;
  plan.stop.epochs = 2;
  // Much longer than the other workers' iterations, also on a machine under full load.
  plan.stragglers = {{.worker = 2, .kind = plan::Pauses{20, std::uint32_t{1}}}};
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  const auto per_iteration = [&](std::size_t worker) {
    const auto& totals = result.totals.workers[worker];
    return totals.samples / std::max<std::uint64_t>(totals.iterations, 1);
  };
  CHECK(per_iteration(2) < per_iteration(0));
  CHECK(per_iteration(2) < per_iteration(1));
  CHECK(result.samples_trained == 2 * 4000);
}

TEST_CASE(
    "on real threads, backup drops the pushes of a slow worker and trains every sample once") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Backup{1};
  plan.workers = 4;
  plan.stop.epochs = 100;
  // Much longer than the other workers' iterations, also on a machine under full load.
  plan.stragglers = {{3, false, plan::Pauses{10, std::uint32_t{1}}}};
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 100 * 60);
  CHECK(result.dropped_pushes > 5);
  CHECK(result.totals.workers[3].samples < result.totals.workers[0].samples);
  CHECK(result.totals.last.malformed == 0);
  CHECK(result.totals.last.refused == 0);
}

TEST_CASE("workers that throw or are killed are evicted, and every sample is still trained") {
  Plan plan = tiny_plan();
  plan.workers = 4;
  plan.stop.epochs = 20;
  plan.faults = {{address_of(WorkerId(1)), std::int64_t{10}, 0, plan::Throws{}},
                 {address_of(WorkerId(2)), std::int64_t{20}, 0, plan::Killed{}}};
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 20 * 60);
  CHECK_FALSE(result.totals.workers[1].end.empty());
  CHECK_FALSE(result.totals.workers[2].end.empty());
}

TEST_CASE("every sample is trained once when workers crash, return, join later and freeze") {
  Plan plan = tiny_plan();
  plan.workers = 4;
  plan.stop.epochs = 60;
  // Makes the run long enough for all faults.
  plan.stragglers = {{0, true, plan::Pauses{2, 1u}}};
  plan.faults = {{address_of(WorkerId(1)), std::int64_t{5}, 0, plan::Crash{0.05}},
                 {address_of(WorkerId(2)), 0.02, 0, plan::Joins{}},
                 {address_of(WorkerId(3)), std::int64_t{8}, 0, plan::Freeze{0.1}}};
  SECTION("bounded") {
    plan.consistency = plan::Ssp{2};
  }
  SECTION("by rounds") {
    plan.consistency = plan::Bsp{};
  }
  const auto result = run(plan, kQuiet);
  REQUIRE(result.ok());
  CHECK(result.samples_trained == 60 * 60);
  CHECK(result.totals.last.malformed == 0);
  // Totals include all launches of a worker.
  for (const auto& worker : result.totals.workers) CHECK(worker.samples > 100);
  CHECK(result.totals.workers[1].end == "fault of the plan: crash");
  CHECK(result.totals.workers[1].back);
  CHECK(result.totals.workers[2].end.empty());
}

TEST_CASE("in its steady state, a run allocates no tensor memory from the system") {
  Plan plan = tiny_plan();
  plan.data = plan::Synthetic{2000, 20, plan::Clusters{10, 64, 3}};
  plan.model = {plan::Linear{256}, plan::Relu{}, plan::Linear{10}};
  SECTION("an MLP") {}
  SECTION("a convolutional network") {
    plan.data = images_of("local host images", plan.data, {1, 8, 8});
    plan.model = {plan::Conv2d{.outputs = 8, .padding = 1},
                  plan::BatchNorm{},
                  plan::Relu{},
                  plan::Residual{{plan::Conv2d{.outputs = 8, .padding = 1}}, {}},
                  plan::MaxPool2d{},
                  plan::Flatten{},
                  plan::Dropout{0.1},
                  plan::Linear{10}};
  }
  plan.batch = 8;
  plan.prefetch = true;
  plan.stop.epochs = 4;
  // The first runs fill the pool.
  REQUIRE(run(plan, kQuiet).ok());
  REQUIRE(run(plan, kQuiet).ok());
  const auto before = host_pool_counts();
  REQUIRE(run(plan, kQuiet).ok());
  const auto after = host_pool_counts();
  CHECK(after.reuses - before.reuses > 1000);
  // The number of live buffers depends on timing, so a few allocations may remain: far fewer than
  // one per iteration of the 1000.
  CHECK(after.system_allocations - before.system_allocations < 100);
}

}  // namespace leeway::test
