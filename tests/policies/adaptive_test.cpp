#include "policies/consistency/adaptive.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace leeway;

namespace {

/// Eight iterations of 900 us, in which two of four workers waited `waited_us` for the others.
std::vector<WorkerTime> interval(std::int64_t waited_us) {
  return {{8, 800, 7200}, {8, 800, 7200}, {8, 800 + waited_us, 7200}, {8, 800 + waited_us, 7200}};
}
const auto kQuiet = interval(0), kBetween = interval(1000), kBusy = interval(4000);

std::int64_t after(AdaptiveBound& bound, const std::vector<WorkerTime>& workers, int intervals) {
  for (int i = 0; i < intervals; ++i) bound.next(workers);
  return bound.bound();
}

}  // namespace

TEST_CASE("time that all workers wait alike is not lost") {
  CHECK(percent_lost(interval(0)) == 0);
  CHECK(percent_lost(std::vector<WorkerTime>{{8, 8000, 800}, {16, 16000, 100}}) == 0);
}

TEST_CASE("lost time is the waiting beyond that of the worker that waits least") {
  CHECK(percent_lost(interval(4000)) == 100 * 8000 / (32000 + 8000));
  // The slow worker had half as many iterations.
  CHECK(percent_lost(std::vector<WorkerTime>{{4, 0, 8000}, {8, 4000, 4000}}) == 25);
  CHECK(percent_lost(std::vector<WorkerTime>{{8, 4000, 4000}}) == 0);
  CHECK(percent_lost({}) == 0);
  CHECK(percent_lost(std::vector<WorkerTime>{{0, 9000, 0}, {8, 100, 800}}) == 0);
}

TEST_CASE("the bound starts low, rises to the high end while workers wait, and falls back") {
  AdaptiveBound bound(1, 8, 1);
  CHECK(bound.bound() == 1);
  CHECK(bound.next(kBusy) == 2);
  CHECK(bound.next(kBusy) == 3);
  CHECK(after(bound, kBusy, 20) == 8);
  CHECK(after(bound, kQuiet, 14) == 1);
  CHECK(after(bound, kQuiet, 20) == 1);
}

TEST_CASE("long waits raise the bound faster") {
  AdaptiveBound bound(2, 100, 2);
  CHECK(bound.next(interval(20000)) == 4);
  CHECK(bound.next(interval(20000)) == 7);
}

TEST_CASE("moderate waits leave the bound as it is") {
  AdaptiveBound bound(1, 8, 1);
  after(bound, kBusy, 3);
  CHECK(after(bound, kBetween, 50) == 4);
}

TEST_CASE("a fall that is undone doubles the time until the next one") {
  AdaptiveBound bound(1, 8, 1);
  after(bound, kBusy, 4);
  // With a bound of 5 no worker waits; with 4, some do.
  std::vector<int> falls;
  for (int i = 0; i < 400; ++i) {
    const auto before = bound.bound();
    bound.next(before >= 5 ? kQuiet : kBusy);
    if (bound.bound() < before) falls.push_back(i);
  }
  REQUIRE(falls.size() >= 6);
  for (std::size_t i = 2; i < falls.size(); ++i) {
    const int gap = falls[i] - falls[i - 1], gap_before = falls[i - 1] - falls[i - 2];
    CHECK(gap == 2 * (gap_before - 1) + 1);
  }
}

TEST_CASE("the bound does not oscillate, whatever the workers report") {
  rc::prop("few falls are undone", [] {
    const auto high = *rc::gen::inRange<std::int64_t>(1, 20);
    AdaptiveBound bound(0, high, *rc::gen::inRange<std::int64_t>(0, high + 1));
    const int intervals = *rc::gen::inRange(1, 600);
    // Quiet intervals are likely: only they let the bound fall.
    const int busy_percent = *rc::gen::inRange(1, 50);
    int undone = 0;
    bool has_fallen = false;
    for (int i = 0; i < intervals; ++i) {
      const bool is_busy = *rc::gen::inRange(0, 100) < busy_percent;
      const auto before = bound.bound(), now = bound.next(is_busy ? kBusy : kQuiet);
      undone += has_fallen && now > before;
      has_fallen = now < before || (has_fallen && now == before);
    }
    RC_ASSERT(undone <= std::log2(intervals + 2) - 1);
  });
}

TEST_CASE("the bound stays in its range and depends only on the reports") {
  rc::prop("any reports", [] {
    const auto low = *rc::gen::inRange<std::int64_t>(0, 20);
    const auto high = low + *rc::gen::inRange<std::int64_t>(1, 50);
    AdaptiveBound bound(low, high, low), again(low, high, low);
    const auto any = [] {
      return *rc::gen::weightedOneOf<std::int64_t>(
          {{6, rc::gen::inRange<std::int64_t>(0, 20'000)},
           {1, rc::gen::element<std::int64_t>(0, 1, (std::int64_t{1} << 62) - 1)}});
    };
    for (int i = *rc::gen::inRange(1, 40); i > 0; --i) {
      std::vector<WorkerTime> workers(*rc::gen::inRange<std::size_t>(0, 6));
      for (auto& worker : workers) worker = {any(), any(), any()};
      const auto lost = percent_lost(workers);
      RC_ASSERT(lost >= 0);
      RC_ASSERT(lost <= 100);
      const auto before = bound.bound(), now = bound.next(workers);
      RC_ASSERT(now >= low);
      RC_ASSERT(now <= high);
      RC_ASSERT(now <= before || lost > AdaptiveBound::kRaiseAbove);
      RC_ASSERT(now >= before || lost < AdaptiveBound::kLowerBelow);
      RC_ASSERT(again.next(workers) == now);
    }
  });
}
