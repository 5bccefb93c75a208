// Sums of events: iterations that overlap, are dropped or end twice, and the ranges of histograms.
#include "monitoring/event_totals.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

namespace {

constexpr WorkerId kWorker{1};

Instant at_ms(std::int64_t ms) {
  return Instant{} + milliseconds(ms);
}

void begin(EventTotals& totals, std::int64_t iteration, std::int64_t ms, std::int64_t waited_ms) {
  totals.add(at_ms(ms),
             event::StepStarted{kWorker, Iteration(iteration), 2, milliseconds(waited_ms)});
}
void finish(EventTotals& totals, std::int64_t iteration, std::int64_t ms,
            std::int64_t samples = 2) {
  totals.add(at_ms(ms), event::StepFinished{kWorker, Iteration(iteration), samples});
}

std::uint64_t iterations(const EventTotals& totals) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : totals.work()[1].iterations.read().by_bound) sum += count;
  return sum;
}
std::int64_t iteration_ms(const EventTotals& totals) {
  return totals.work()[1].iterations.read().sum / 1'000'000;
}
std::int64_t compute_ms(const EventTotals& totals) {
  return totals.work()[1].compute_ns / 1'000'000;
}
std::int64_t wait_ms(const EventTotals& totals) {
  return totals.work()[1].wait_ns / 1'000'000;
}

}  // namespace

TEST_CASE("an observation is counted in the first range that holds it") {
  static constexpr std::array<std::int64_t, 2> kBounds = {0, 10};
  AtomicHistogram<2> histogram(kBounds);
  for (const std::int64_t observation : {-1, 0, 1, 10, 11}) histogram.add(observation);
  CHECK(histogram.read().by_bound == std::array<std::uint64_t, 3>{2, 2, 1});
  CHECK(histogram.read().sum == 21);
}

TEST_CASE("an iteration lasts from ready to finished") {
  EventTotals totals(3, false);
  begin(totals, 0, 30, 20);
  finish(totals, 0, 100);
  CHECK(iterations(totals) == 1);
  CHECK(iteration_ms(totals) == 90);
  CHECK(compute_ms(totals) == 70);
  CHECK(wait_ms(totals) == 20);
}

TEST_CASE("a dropped iteration counts as computing, but not as an iteration") {
  EventTotals totals(3, false);
  begin(totals, 0, 10, 0);
  finish(totals, 0, 25, 0);
  finish(totals, 0, 90, 0);  // the worker reports its end a second time
  CHECK(iterations(totals) == 0);
  CHECK(compute_ms(totals) == 15);
}

TEST_CASE("an iteration that a lost worker began ends with its next one") {
  EventTotals totals(3, false);
  begin(totals, 4, 10, 0);
  begin(totals, 2, 1000, 5);  // after a restart
  finish(totals, 4, 1010);
  finish(totals, 2, 1020);
  CHECK(iterations(totals) == 1);
  CHECK(iteration_ms(totals) == 25);
  CHECK(compute_ms(totals) == 20);
}

TEST_CASE("the operations of a stage report its times, and overlapping iterations count once") {
  EventTotals totals(4, true);
  begin(totals, 0, 0, 0);
  begin(totals, 1, 40, 0);
  totals.add(at_ms(50),
             event::StageComputed{
                 .worker = kWorker, .computed = milliseconds(7), .waited = milliseconds(3)});
  finish(totals, 0, 60);   // its begin is no longer known
  finish(totals, 1, 100);  // 40 after the end of the one before
  begin(totals, 2, 150, 0);
  finish(totals, 2, 170);  // 20 after its begin
  CHECK(iterations(totals) == 2);
  CHECK(iteration_ms(totals) == 60);
  CHECK(compute_ms(totals) == 7);
  CHECK(wait_ms(totals) == 3);
}

TEST_CASE("events of workers that the plan lacks are ignored") {
  EventTotals totals(1, false);
  begin(totals, 0, 10, 5);
  finish(totals, 0, 20);
  totals.add(at_ms(1), event::StageComputed{.worker = kWorker, .computed = milliseconds(1)});
  CHECK(totals.work().size() == 1);
  CHECK(totals.work()[0].compute_ns == 0);
}
