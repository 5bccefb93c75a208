// Checks in GoogleTest: they compile, and a failed one prints its explanation.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/testing/small.hpp"

using namespace leeway;

namespace {

const SimulatedRun& slow_run() {
  static const SimulatedRun run = simulate(test::small().straggler(slow(3, 4)));
  return run;
}

}  // namespace

TEST(Checks, HoldInGoogleTest) {
  EXPECT_TRUE(ended_well(slow_run()));
  EXPECT_TRUE(trained_exactly_once(slow_run()));
  EXPECT_TRUE(waited_for(slow_run(), worker(3)) > 20_percent);
  EXPECT_GT(waited_for(slow_run(), worker(3)), 0.2);
  EXPECT_LE(max_clock_gap(slow_run()), 3);
  EXPECT_FALSE(max_clock_gap(slow_run()) > 3);
  EXPECT_GE(events(slow_run()).of<event::PullParked>().count(), 1);
}

TEST(Checks, ExplainTheirFailureInGoogleTest) {
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(max_clock_gap(slow_run()) > 100),
                          "the largest clock gap is 3, which is not > 100");
  EXPECT_NONFATAL_FAILURE(EXPECT_GT(max_clock_gap(slow_run()), 100), "3 (the largest clock gap)");
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(Verdict(false, "the explanation")), "the explanation");
}
