#include "blame/run_waits.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/models/datasets/files.hpp"

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
  folder.write("plan.json", R"({"shards": 2})");
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  CHECK_FALSE(waits->from_events);
  CHECK(waits->compute == 15);
  CHECK(waits->wait == 5);
  CHECK(waits->attributed() == Approx(5));
  const auto rows = rows_of(*waits);
  // Parked for 6 s at each of two shards, longer than it waited.
  CHECK(rows.at({0, {Kind::worker, 1}}) == Approx(4));
  CHECK(rows.at({1, {Kind::worker, 0}}) == Approx(0.25));
  CHECK(rows.at({1, {Kind::other}}) == Approx(0.75));
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
  folder.write("events.jsonl",
               R"({"ns":0,"actor":"shard 0","event":"admitted","worker":0,"iteration":0}
{"ns":1000000000,"actor":"scheduler","event":"lease_granted","worker":0,"iteration":0}
{"ns":1200000000,"actor":"shard 0","event":"pull_parked","worker":0,"iteration":0}
{"ns":1300000000,"actor":"shard 1","event":"pull_parked","worker":0,"iteration":0}
{"ns":2000000000,"actor":"shard 0","event":"pull_released","worker":0,"iteration":0,"mover":2}
{"ns":2000000000,"actor":"shard 0","event":"pull_answered","worker":0,"iteration":0}
{"ns":3000000000,"actor":"shard 1","event":"pull_released","worker":0,"iteration":0,"mover":1}
{"ns":3000000000,"actor":"shard 1","event":"pull_answered","worker":0,"iteration":0}
{"ns":3100000000,"actor":"worker 0","event":"step_started","worker":0,"iteration":0}
{"ns":5000000000,"actor":"worker 0","event":"step_finished","worker":0,"iteration":0}
{"ns":5300000000,"actor":"scheduler","event":"lease_granted","worker":0,"iteration":1}
{"ns":5400000000,"actor":"shard 0","event":"pull_answered","worker":0,"iteration":1}
{"ns":5500000000,"actor":"worker 0","event":"step_started","worker":0,"iteration":1}
{"ns":6000000000,"actor":"scheduler","event":"evicted","worker":0}
{"ns":9000000000,"actor":"worker 0","event":"step_started","worker":0,"iteration":5}
{"ns":90)");
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  CHECK(waits->from_events);
  const auto rows = rows_of(*waits);
  CHECK(rows.at({0, {Kind::worker, 1}}) == Approx(1.7));
  CHECK(rows.at({0, {Kind::request}}) == Approx(0.3 + 0.1));
  CHECK(rows.at({0, {Kind::samples}}) == Approx(0.3));
  CHECK(rows.at({0, {Kind::weights}}) == Approx(0.1 + 0.1));
  CHECK(waits->attributed() == Approx(2.6));  // the first wait begins with the first lease
}

TEST_CASE("events are read by time, from where the run was resumed") {
  const TemporaryFolder folder;
  folder.write("result.json", kResult);
  const std::string started =
      R"({"ns":3000000000,"actor":"worker 0","event":"step_started","worker":0,"iteration":0})";
  const std::string earlier =
      R"({"ns":0,"actor":"shard 0","event":"admitted","worker":0,"iteration":0}
{"ns":1000000000,"actor":"shard 0","event":"pull_parked","worker":0,"iteration":0}
{"ns":2500000000,"actor":"shard 0","event":"pull_released","worker":0,"iteration":0,"mover":0}
{"ns":2500000000,"actor":"shard 0","event":"pull_answered","worker":0,"iteration":0})";
  // The batch of the worker's node came first.
  folder.write("events.jsonl", started + "\n" + started + "\n" +
                                   R"({"ns":0,"actor":"host","event":"resumed"})" + "\n" + started +
                                   "\n" + earlier + "\n");
  const auto waits = read_run_waits(folder.path(""));
  REQUIRE(waits);
  const auto rows = rows_of(*waits);
  // The pull waited for the worker's own push.
  CHECK(rows.at({0, {Kind::request}}) == Approx(1.5));
  CHECK(rows.at({0, {Kind::weights}}) == Approx(0.5));
  CHECK(rows.size() == 2);
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
  folder.write("events.jsonl", "nonsense\n{}\n");
  CHECK_THAT(error(), Contains("events.jsonl\", line 1"));
}

}  // namespace leeway::blame
