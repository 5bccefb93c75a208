// The properties of docs/staleness.md under random interleavings and faults. A failure prints the
// seed that repeats it.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "core/text.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// A plan drawn from a seed: policy, balance, numbers of actors, batch, prefetch, evaluations.
Plan random_plan(std::uint64_t seed) {
  Rng rng(mix64(seed));
  Plan plan = tiny_plan();
  plan.seed = seed;
  plan.workers = static_cast<std::uint32_t>(1 + rng.below(5));
  plan.shards = static_cast<std::uint32_t>(1 + rng.below(3));
  plan.batch = static_cast<std::uint32_t>(1 + rng.below(7));
  plan.lease_size = rng.one_in(2) ? 0 : plan.batch + static_cast<std::uint32_t>(rng.below(20));
  const std::uint64_t policy = rng.below(9);
  const auto least = static_cast<std::uint32_t>(rng.below(4));
  if (policy == 0) plan.consistency = plan::Bsp{};
  if (policy == 1) plan.consistency = plan::Asp{};
  if (policy > 1) plan.consistency = plan::Ssp{least};
  if (policy > 4)
    plan.consistency = plan::Adaptive{least, least + 1 + static_cast<std::uint32_t>(rng.below(4))};
  const bool rounds = policy > 6 && plan.workers > 1;
  if (rounds)
    plan.consistency = plan::Backup{static_cast<std::uint32_t>(1 + rng.below(plan.workers - 1))};
  if (rounds && rng.one_in(2))
    plan.consistency =
        plan::Quorum{.count = static_cast<std::uint32_t>(1 + rng.below(plan.workers)),
                     .grace_ms = rng.one_in(2) ? 0.0 : 0.5};
  if (auto* quorum = std::get_if<plan::Quorum>(&plan.consistency); quorum && quorum->grace_ms == 0)
    quorum->mad = rng.one_in(2);
  const bool leeway = policy == 1 || (policy > 1 && least > 0 && !rounds);
  plan.prefetch = leeway && rng.one_in(2);
  if (rng.one_in(3)) {
    plan.balance = plan::Balance::by_speed;
    plan.stop.epochs = 6;  // until speeds are measured
  }
  plan.evaluate_every = rng.one_in(2) ? 0 : 0.3;
  if (rng.one_in(4)) plan.optimizer.clip_norm = 0.1;
  return plan;
}

struct Checked {
  RunTotals totals;
  std::uint64_t hash;
  std::uint64_t answered;
  std::uint64_t snapshots;
  std::uint64_t bounds;
  std::uint64_t unequal;
  std::uint64_t late;
};

/// Counts the events that the checkers have checked.
class Counter final : public sim::Observer {
 public:
  void on_event(Instant, Address, const Event& event) override {
    answered += event.as<event::PullAnswered>() ? 1 : 0;
    bounds += event.as<event::BoundChanged>() ? 1 : 0;
    late += event.as<event::PushDropped>() ? 1 : 0;
  }
  void on_delivered(Instant, const sim::Letter& letter) override {
    if (letter.to() == kMonitor && letter.as<msg::SnapshotState>()) ++snapshots;
    if (letter.from() != kScheduler) return;
    if (const auto* lease = letter.as<msg::Lease>()) unequal += lease->batch != batch ? 1 : 0;
  }
  explicit Counter(std::uint32_t usual) : batch(usual) {}
  std::uint32_t batch;
  std::uint64_t answered = 0, snapshots = 0, bounds = 0, late = 0;
  std::uint64_t unequal = 0;  // leases with a batch size other than the plan's
};

Checked run_checked(std::uint64_t seed, FaultRates faults) {
  const auto job = job_of(random_plan(seed));
  TestHost host(job, seed, faults);
  observe_all(host, job);
  const auto counter = std::make_shared<Counter>(job->plan.batch);
  host.observe(counter);
  auto totals = host.run();
  // If live workers are suspected, all may be evicted at once, which ends the run.
  if (faults.suspect_one_in == 0 || totals.end.text.find("no worker is left") == std::string::npos)
    LW_CHECK(totals.end.reason == msg::RunEnded::Reason::finished, totals.end.text);
  return {std::move(totals), host.trace_hash(), counter->answered, counter->snapshots,
          counter->bounds,   counter->unequal,  counter->late};
}

/// Runs `count` seeds, starting at `first` million, and names one that fails. The environment
/// variable LEEWAY_SEEDS multiplies the count.
template <class Check>
void for_seeds(std::uint64_t first, std::uint64_t count, Check check) {
  if (const char* times = std::getenv("LEEWAY_SEEDS")) count *= std::stoull(times);
  first *= 1'000'000;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    REQUIRE_NOTHROW(check(seed));
  }
}

}  // namespace

TEST_CASE("properties 1 to 6 hold under random interleavings") {
  std::uint64_t answered = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t bounds = 0;
  std::uint64_t unequal = 0;
  std::uint64_t late = 0;
  for_seeds(1, 150, [&](std::uint64_t seed) {
    const auto checked = run_checked(seed, {});
    answered += checked.answered;
    snapshots += checked.snapshots;
    bounds += checked.bounds;
    unequal += checked.unequal;
    late += checked.late;
  });
  CHECK(answered > 5000);
  CHECK(snapshots > 300);
  CHECK(bounds > 50);
  CHECK(unequal > 100);
  CHECK(late > 500);
}

TEST_CASE("properties 1 to 6 hold when workers are killed") {
  std::uint64_t evicted = 0;
  for_seeds(2, 150, [&](std::uint64_t seed) {
    const auto checked = run_checked(seed, {.kill_one_in = 300});
    for (const auto& worker : checked.totals.workers) evicted += worker.end.empty() ? 0 : 1;
  });
  CHECK(evicted > 50);
}

TEST_CASE("properties 1 to 6 hold when links break and messages are repeated") {
  for_seeds(3, 150, [&](std::uint64_t seed) { run_checked(seed, {.break_link_one_in = 20}); });
}

TEST_CASE("properties 1 to 6 hold when live workers are evicted and come back") {
  std::uint64_t partial = 0;
  for_seeds(4, 150, [&](std::uint64_t seed) {
    partial += run_checked(seed, {.suspect_one_in = 150}).totals.end.partial_pushes;
  });
  CHECK(partial > 10);
}

TEST_CASE("properties 1 to 6 hold under all faults at once, including malformed messages") {
  std::uint64_t malformed = 0;
  for_seeds(5, 150, [&](std::uint64_t seed) {
    const auto checked = run_checked(seed, {.kill_one_in = 1000,
                                            .suspect_one_in = 400,
                                            .break_link_one_in = 50,
                                            .garbage_one_in = 40});
    malformed += checked.totals.last.malformed;
  });
  CHECK(malformed > 100);
}

TEST_CASE("a lost PushDropped is sent again when the link is restored") {
  struct DropNotices final : sim::Observer {
    void on_sent(Instant, const sim::Letter& letter) override {
      if (const auto* dropped = letter.as<msg::PushDropped>())
        all.emplace_back(letter.to(), dropped->next);
    }
    std::vector<std::pair<Address, Iteration>> all;
  };
  Plan plan = tiny_plan();
  plan.consistency = plan::Backup{1};
  const auto job = job_of(plan);
  TestHost host(job, 1);
  observe_all(host, job);
  const auto notices = std::make_shared<DropNotices>();
  host.observe(notices);
  while (notices->all.empty()) REQUIRE(host.run_some(1));
  const auto first = notices->all.front();
  host.break_link(first.first, kScheduler);  // loses the notice
  REQUIRE(notices->all.size() == 2);
  CHECK(notices->all.back() == first);
  CHECK(host.run().end.samples_trained == 120);
}

TEST_CASE("a request for an iteration far beyond all leases ends its worker, but not the run") {
  Plan plan = tiny_plan();
  plan.evaluate_every = 0.2;
  const auto job = job_of(plan);
  TestHost host(job, 1);
  observe_all(host, job);
  REQUIRE(host.run_some(200));
  host.inject(address_of(WorkerId(1)), kScheduler,
              encode({.body = msg::WantLease{.next = Iteration(std::int64_t{1} << 61)}}));
  const auto totals = host.run();
  CHECK(totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(totals.end.samples_trained == 2 * 60);
  CHECK(totals.workers[1].end.find("killed") == 0);  // a worker that is refused throws
}

TEST_CASE("property 9: two runs of one seed take the same steps") {
  for_seeds(6, 30, [&](std::uint64_t seed) {
    const FaultRates faults{.kill_one_in = 1000, .suspect_one_in = 400, .break_link_one_in = 50};
    LW_CHECK(run_checked(seed, faults).hash == run_checked(seed, faults).hash);
  });
  CHECK(run_checked(1, {}).hash != run_checked(2, {}).hash);
}

}  // namespace leeway::test
