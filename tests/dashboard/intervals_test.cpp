#include "dashboard/intervals.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

namespace leeway::dashboard {
namespace {

double sum_of(const Intervals& intervals) {
  double sum = 0;
  for (const Interval& interval : intervals.all()) {
    sum += interval.compute;
    for (const auto& [key, seconds] : interval.waits) sum += seconds;
  }
  return sum;
}

}  // namespace

TEST_CASE("spans keep their sums, whatever the length of the run") {
  rc::prop("sums", [] {
    Intervals intervals(4, 4);
    double expected = 0;
    std::uint64_t revision = 0;
    const auto count = *rc::gen::inRange(1, 60);
    for (int i = 0; i < count; ++i) {
      const double begin = *rc::gen::inRange(0, 1'000'000) * 1e-4;
      const double length = *rc::gen::inRange(1, 100'000) * 1e-4;
      intervals.spread(begin, begin + length, ++revision, [&](Interval& interval, double share) {
        interval.compute += share * length;
      });
      expected += length;
    }
    RC_ASSERT(intervals.all().size() <= Intervals::kMost);
    RC_ASSERT(std::abs(sum_of(intervals) - expected) < 1e-6 * expected);
  });
}

TEST_CASE("a span is divided over its intervals") {
  Intervals intervals(1, 1);
  intervals.at(0.239, 1);  // the width stays 1 ms
  intervals.spread(0.0105, 0.0125, 2,
                   [](Interval& interval, double share) { interval.compute += share * 0.002; });
  CHECK(intervals.all()[10].compute == Approx(0.0005));
  CHECK(intervals.all()[11].compute == Approx(0.001));
  CHECK(intervals.all()[12].compute == Approx(0.0005));
  CHECK(intervals.all()[13].compute == 0);
}

TEST_CASE("when the run is longer, neighbours are merged") {
  Intervals intervals(2, 2);
  Interval& first = intervals.at(0.0001, 1);
  first.samples = 1;
  first.lead = {3, -1};
  first.taking_part[0] = true;
  Interval& second = intervals.at(0.0011, 2);
  second.samples = 2;
  second.lead = {1, 5};
  second.taking_part[1] = true;
  second.alive = 2;
  intervals.at(0.3, 3);
  CHECK(intervals.width() == Approx(0.002));
  CHECK(intervals.widened() == 3);
  const Interval& merged = intervals.all().front();
  CHECK(merged.samples == 3);
  CHECK(merged.lead == std::vector<std::int32_t>{3, 5});
  CHECK(merged.taking_part == std::vector<bool>{true, true});
  CHECK(merged.alive == 2);
  CHECK(intervals.all().back().alive == 2);  // inherited
  CHECK(merged.changed == 2);
}

TEST_CASE("intervals without work after the end of the run are dropped") {
  Intervals intervals(1, 1);
  intervals.at(0.05, 1).samples = 1;
  intervals.at(0.1, 2).push_bytes = 7;
  intervals.end_at(0.0401, 3);
  CHECK(intervals.all().back().push_bytes == 7);
  CHECK(intervals.all().size() == 51);
  CHECK(intervals.widened() == 3);
}

TEST_CASE("an interval keeps the longest waits, and the sum of all") {
  Interval interval;
  double sum = 0;
  for (std::size_t worker = 0; worker < 1000; ++worker) {
    const auto seconds = static_cast<double>(worker);
    interval.waits[{worker % 10, {blame::Cause::Kind::worker, worker}}] = seconds;
    sum += seconds;
  }
  interval.trim();
  CHECK(interval.waits.size() <= Intervals::kMostWaits);
  CHECK(interval.waits.contains({9, {blame::Cause::Kind::worker, 999}}));
  double kept = 0;
  for (const auto& [key, seconds] : interval.waits) kept += seconds;
  CHECK(kept == Approx(sum));
}

}  // namespace leeway::dashboard
