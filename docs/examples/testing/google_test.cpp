// The same tests in GoogleTest.
#include <gtest/gtest.h>
#include <leeway/testing.hpp>

#include "racks.hpp"

using namespace leeway;

TEST(Racks, OthersWaitForTheSlowWorker) {
  const SimulatedRun run = simulate(racks(), {.seed = 3});
  EXPECT_TRUE(trained_exactly_once(run));
  EXPECT_TRUE(waited_for(run, worker(3)) > 20_percent);
  EXPECT_LE(max_clock_gap(run), 3);
}

TEST(Racks, LoseNoSampleWithAWorker) {
  Scenario scenario = racks();
  scenario.fault(crashes(worker(1), at_iteration(10)));
  EXPECT_TRUE(sweep(scenario, {.first = 1, .last = 10}, trained_exactly_once));
}
