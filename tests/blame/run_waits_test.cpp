#include "blame/run_waits.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/blame/event_files.hpp"

namespace leeway::blame {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;
using Kind = Cause::Kind;

const std::string kResult = R"({"name": "tiny",
  "workers": [{"worker": 0, "compute_seconds": 6, "wait_seconds": 4},
              {"worker": 1, "compute_seconds": 9, "wait_seconds": 1}],
  "waits": [{"worker": 0, "for_worker": 1, "seconds": 12, "pulls": 2},
            {"worker": 1, "for_worker": 0, "seconds": 0.5, "pulls": 1}]})";

std::map<std::pair<std::size_t, Cause>, double> rows_of(const RunWaits& waits) {
  std::map<std::pair<std::size_t, Cause>, double> rows;
  for (const auto& row : waits.rows) rows[{row.worker, row.cause}] = row.seconds;
  return rows;
}

}  // namespace

TEST_CASE(
    "without events, waiting times are divided by parked times and sum to the measured ones") {
  const TemporaryFolder folder;
  folder.write("result.json", kResult);
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  CHECK_FALSE(waits->from_events);
  CHECK(waits->compute == 15);
  CHECK(waits->wait == 5);
  CHECK(waits->attributed() == Approx(5));
  const auto rows = rows_of(*waits);
  // Parked for 12 s, longer than it waited.
  CHECK(rows.at({0, {Kind::worker, 1}}) == Approx(4));
  CHECK(rows.at({1, {Kind::worker, 0}}) == Approx(0.5));
  CHECK(rows.at({1, {Kind::other}}) == Approx(0.5));
  CHECK(rows.size() == 3);
  CHECK(waits->by_cause().front() == std::pair<Cause, double>({Kind::worker, 1}, 4));
  CHECK(waits->share(4) == Approx(0.2));
}

TEST_CASE("stages are divided by the shares of their neighbours") {
  const TemporaryFolder folder;
  folder.write("result.json", R"({"name": "piped", "waits": [], "workers": [
    {"worker": 0, "stage": 0, "compute_seconds": 2, "wait_seconds": 3,
     "wait_for_stage_before_seconds": 0, "wait_for_stage_after_seconds": 2.5}]})");
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  const auto rows = rows_of(*waits);
  CHECK(rows.at({0, {Kind::stage_after}}) == Approx(2.5));
  CHECK(rows.at({0, {Kind::other}}) == Approx(0.5));
}

TEST_CASE("with events, a wait is divided at the moments of the last answered pull") {
  const TemporaryFolder folder;
  folder.write("result.json", kResult);
  const Address shard0 = shard(0), shard1 = shard(1), worker0 = worker(0);
  const WorkerId id(0);
  const Iteration first(0), second(1), late(5);
  write_events(
      folder,
      {{kScheduler, milliseconds(1000), event::LeaseGranted{.worker = id, .iteration = first}},
       {shard0, milliseconds(1200), event::PullParked{id, first, {}}},
       {shard1, milliseconds(1300), event::PullParked{id, first, {}}},
       {shard0, milliseconds(2000), event::PullReleased{id, first, WorkerId(2)}},
       {shard0, milliseconds(2000), event::PullAnswered{id, first, {}, {}}},
       {shard1, milliseconds(3000), event::PullReleased{id, first, WorkerId(1)}},
       {shard1, milliseconds(3000), event::PullAnswered{id, first, {}, {}}},
       {worker0, milliseconds(3100), event::StepStarted{id, first, 10, milliseconds(2100)}},
       {worker0, milliseconds(5000), event::StepFinished{id, first, 10}},
       {kScheduler, milliseconds(5300), event::LeaseGranted{.worker = id, .iteration = second}},
       {shard0, milliseconds(5400), event::PullAnswered{id, second, {}, {}}},
       {worker0, milliseconds(5500), event::StepStarted{id, second, 10, milliseconds(500)}},
       {kScheduler, milliseconds(6000), event::Evicted{id}},
       {worker0, milliseconds(9000), event::StepStarted{id, late, 10, milliseconds(0)}}});
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  CHECK(waits->from_events);
  const auto rows = rows_of(*waits);
  CHECK(rows.at({0, {Kind::worker, 1}}) == Approx(1.7));
  CHECK(rows.at({0, {Kind::request}}) == Approx(0.3 + 0.1));
  CHECK(rows.at({0, {Kind::samples}}) == Approx(0.3));
  CHECK(rows.at({0, {Kind::weights}}) == Approx(0.1 + 0.1));
  CHECK(waits->attributed() == Approx(2.6));
}

TEST_CASE("a pull that waited for the worker's own push counts as a request") {
  const TemporaryFolder folder;
  folder.write("result.json", kResult);
  const WorkerId id(0);
  const Iteration first(0);
  // The batch of the worker's node comes first.
  write_events(folder,
               {{worker(0), milliseconds(3000), event::StepStarted{id, first, 10, seconds(2)}},
                {shard(0), milliseconds(1000), event::PullParked{id, first, {}}},
                {shard(0), milliseconds(2500), event::PullReleased{id, first, id}},
                {shard(0), milliseconds(2500), event::PullAnswered{id, first, {}, {}}}});
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  const auto rows = rows_of(*waits);
  CHECK(rows.at({0, {Kind::request}}) == Approx(1.5));
  CHECK(rows.at({0, {Kind::weights}}) == Approx(0.5));
  CHECK(rows.size() == 2);
}

TEST_CASE("events of shards that come after the iteration neither change nor keep its waits") {
  std::map<Cause, double> sums;
  WaitFollower follower(
      [&](const Wait& wait) { sums[wait.cause] += (wait.end - wait.begin).seconds(); });
  const WorkerId id(0);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Instant now = Instant{} + seconds(10 * i + 10);
    follower.handle(worker(0), now, event::StepStarted{id, Iteration(i), 10, seconds(1)});
    follower.handle(shard(0), now, event::PullParked{id, Iteration(i), {}});
    follower.handle(shard(0), now, event::PullAnswered{id, Iteration(i), {}, {}});
  }
  CHECK(sums[{Kind::weights}] == Approx(3));
  CHECK(sums.size() == 1);
  CHECK(follower.open_pulls() == 0);
}

TEST_CASE("the workers of a host group wait for its last gradient, then for the lead's pull") {
  std::map<std::pair<std::size_t, Cause>, double> sums;
  WaitFollower follower([&](const Wait& wait) {
    sums[{wait.worker, wait.cause}] += (wait.end - wait.begin).seconds();
  });
  const WorkerId lead(4), fast(5), slow(6);
  const Iteration next(1);
  const auto at = [](std::int64_t time) { return Instant{} + seconds(time); };
  // All waits end at 20 s: the lead's from 10 s on, and those of the fast worker from 7 s on.
  follower.handle(worker(4), at(12), event::GroupGathered{lead, Iteration(0), slow, seconds(2)});
  follower.handle(shard(0), at(13), event::PullParked{lead, next, {}});
  follower.handle(shard(0), at(17), event::ClockMoved{WorkerId(0), Clock(1)});
  follower.handle(shard(0), at(17), event::PullReleased{lead, next, WorkerId(0)});
  follower.handle(shard(0), at(17), event::PullAnswered{lead, next, {}, {}});
  follower.handle(worker(4), at(20), event::StepStarted{lead, next, 10, seconds(8)});
  follower.handle(worker(5), at(20), event::StepStarted{fast, next, 10, seconds(13), 1});
  follower.handle(worker(6), at(20), event::StepStarted{slow, next, 10, seconds(8), 2});
  CHECK(sums[{4, {Kind::worker, 6}}] == Approx(2));
  CHECK(sums[{5, {Kind::worker, 6}}] == Approx(5));
  CHECK(sums[{6, {Kind::worker, 6}}] == 0);
  for (const std::size_t one : {4, 5, 6}) {
    CHECK(sums[{one, {Kind::request}}] == Approx(1));
    CHECK(sums[{one, {Kind::worker, 0}}] == Approx(4));
    CHECK(sums[{one, {Kind::weights}}] == Approx(3));
  }
}

TEST_CASE("the events of a stage divide its waits by its neighbours") {
  std::map<Cause, double> sums;
  WaitFollower follower([&](const Wait& wait) {
    CHECK(wait.worker == 2);
    sums[wait.cause] += (wait.end - wait.begin).seconds();
  });
  follower.handle(worker(2), Instant{} + seconds(10),
                  event::StageComputed{.worker = WorkerId(2),
                                       .computed = seconds(1),
                                       .waited = seconds(6),
                                       .waited_before = seconds(3),
                                       .waited_after = seconds(2)});
  CHECK(sums[{Kind::stage_before}] == Approx(3));
  CHECK(sums[{Kind::stage_after}] == Approx(2));
  CHECK(sums[{Kind::other}] == Approx(1));
}

TEST_CASE("missing and malformed files are refused by name") {
  const TemporaryFolder folder;
  const auto error = [&] {
    const auto waits = read_run_waits(folder.path(""));
    REQUIRE_FALSE(waits);
    return waits.error().text;
  };
  CHECK_THAT(error(), Contains("no file") && Contains("result.json"));
  folder.write("result.json", "{}");
  CHECK_THAT(error(), Contains("is not the result of a run"));
  folder.write("result.json", kResult);
  folder.write("events.bin", std::string(100, 'x'));
  CHECK_THAT(error(), Contains("events.bin\" is not a file of events"));
}

}  // namespace leeway::blame
