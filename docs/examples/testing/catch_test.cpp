// Tests of a scenario in Catch2.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <leeway/testing.hpp>

#include "racks.hpp"

using namespace leeway;
using namespace leeway::sim::story;

TEST_CASE("the others wait for the slow worker, but only beyond the bound") {
  const SimulatedRun run = simulate(racks(), {.seed = 3});
  CHECK(trained_exactly_once(run));
  CHECK(waited_for(run, worker(3)) > 20_percent);
  CHECK(max_clock_gap(run) <= 3);
  CHECK(lags(run).quantile(0.9) <= 12);
  CHECK(events(run).of<event::PullParked>().of(worker(0)).any());
}

TEST_CASE("no sample is lost with a worker, for any seed") {
  Scenario scenario = racks();
  scenario.fault(crashes(worker(1), at_iteration(10)));
  CHECK(sweep(scenario, {.first = 1, .last = 10}, trained_exactly_once));
}

TEST_CASE("a pull that waits for a lost worker is answered after its eviction") {
  Story story(racks());
  story.until(begun(worker(3), 2)).crash(worker(3)).until(parked(worker(0)));
  CHECK_FALSE(story.happened(evicted(worker(3))));
  story.until(evicted(worker(3))).to_the_end();
  CHECK(story.happened(finished(worker(0), 20)));
}
