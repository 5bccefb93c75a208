#include "actors/shard/pull_gate.hpp"

#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

const WorkerId kFast(0), kSlow(1);

struct Gate {
  explicit Gate(std::int64_t bound)
      : job(job_of(tiny_plan())),
        tied(*job->stages, ShardId(0), 1, clocks),
        gate(bound, clocks, tied) {
    admit_workers(clocks, 2);
  }
  PullGate::Parking park(WorkerId worker, std::int64_t iteration, Duration since = {}) {
    return gate.park({worker, {Iteration(iteration), Clock(iteration)}, Instant{} + since});
  }
  std::vector<std::int64_t> release(std::optional<WorkerId> mover, Duration now = {}) {
    std::vector<std::int64_t> iterations;
    for (const auto& pull : gate.release(mover, Instant{} + now))
      iterations.push_back(pull.pull.iteration.value());
    return iterations;
  }

  std::shared_ptr<const Job> job;
  ClockTable clocks;
  TiedBlocks tied;
  PullGate gate;
};

using Iterations = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a pull within the bound is allowed once its worker's pushes have arrived") {
  Gate g(1);
  CHECK(g.gate.is_allowed(kFast, Iteration(0), Clock(0)));
  CHECK_FALSE(g.gate.is_allowed(kFast, Iteration(1), Clock(1)));  // has overtaken the push of 0
  g.clocks.advance(kFast);
  CHECK(g.gate.is_allowed(kFast, Iteration(1), Clock(1)));
  g.clocks.advance(kFast);
  CHECK_FALSE(g.gate.is_allowed(kFast, Iteration(2), Clock(2)));  // beyond the bound
}

TEST_CASE("a parked pull is released when the slowest worker's clock moves") {
  Gate g(0);
  g.clocks.advance(kFast);
  CHECK(g.park(kFast, 1) == PullGate::Parking::parked);
  CHECK(g.release(kFast).empty());
  CHECK(g.gate.parked() == 1);
  g.clocks.advance(kSlow);
  CHECK(g.release(kSlow) == Iterations{1});
  CHECK(g.gate.parked() == 0);
}

TEST_CASE("a released pull counts as waiting time for the worker that it waited for") {
  Gate g(0);
  g.clocks.advance(kFast);
  g.park(kFast, 1, milliseconds(2));
  g.clocks.advance(kSlow);
  g.release(kSlow, milliseconds(5));
  const auto waits = g.gate.waits().all();
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].worker == kFast);
  CHECK(waits[0].for_worker == kSlow);
  CHECK(waits[0].time == milliseconds(3));
  CHECK(waits[0].count == 1);
}

TEST_CASE("a pull's wait for a push of its own worker is not counted") {
  Gate g(5);
  g.park(kFast, 1);
  g.clocks.advance(kFast);
  CHECK(g.release(kFast) == Iterations{1});
  CHECK(g.gate.waits().all().empty());
}

TEST_CASE("a repeated pull replaces the first") {
  Gate g(0);
  CHECK(g.park(kFast, 1) == PullGate::Parking::parked);
  CHECK(g.park(kFast, 1) == PullGate::Parking::repeat);
  CHECK(g.gate.parked() == 1);
}

TEST_CASE("the number of parked pulls per worker is limited") {
  Gate g(0);
  for (std::uint32_t i = 1; i <= limits::kMaxPullsPerWorker; ++i)
    CHECK(g.park(kFast, i) == PullGate::Parking::parked);
  CHECK(g.park(kFast, 100) == PullGate::Parking::refused);
  CHECK(g.park(kSlow, 1) == PullGate::Parking::parked);
}

TEST_CASE("withdrawing a worker removes its pulls and no others") {
  Gate g(0);
  g.park(kFast, 1);
  g.park(kSlow, 1);
  const auto withdrawn = g.gate.withdraw(kFast);
  REQUIRE(withdrawn.size() == 1);
  CHECK(withdrawn[0].worker == kFast);
  CHECK(g.gate.parked() == 1);
  CHECK(g.park(kFast, 2) == PullGate::Parking::parked);
}

TEST_CASE("a higher bound releases parked pulls, and those waits count for no worker") {
  Gate g(0);
  g.clocks.advance(kFast);
  g.park(kFast, 1);
  CHECK(g.gate.announce(Iteration(0), 1) == Iteration(0));
  CHECK(g.release(std::nullopt) == Iterations{1});
  CHECK(g.gate.waits().all().empty());
}

TEST_CASE("the bound of an iteration that was answered does not fall") {
  Gate g(2);
  g.gate.answered(Iteration(2));
  CHECK(g.gate.announce(Iteration(0), 0) == Iteration(3));
  g.clocks.advance(kFast);
  g.clocks.advance(kFast);
  CHECK(g.gate.is_allowed(kFast, Iteration(2), Clock(2)));
  g.clocks.advance(kFast);
  CHECK_FALSE(g.gate.is_allowed(kFast, Iteration(3), Clock(3)));
}

TEST_CASE("a full ledger of waits keeps the longer half of its pairs") {
  WaitLedger ledger;
  const auto count = static_cast<std::uint32_t>(limits::kMaxWaits) + 1;
  for (std::uint32_t i = 0; i < count; ++i)
    ledger.add(WorkerId(i), WorkerId(i + 1), nanoseconds(i + 1));
  const auto waits = ledger.all();
  CHECK(waits.size() == limits::kMaxWaits / 2);
  for (const auto& wait : waits) REQUIRE(wait.time.ns > static_cast<std::int64_t>(count / 2));
}

}  // namespace leeway::test
