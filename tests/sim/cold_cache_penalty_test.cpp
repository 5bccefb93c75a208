// How cold a thread grows while it rests, and how it warms up.
#include "sim/cold_cache_penalty.hpp"

#include <catch2/catch.hpp>

namespace leeway::sim {

TEST_CASE("a thread that has not rested is warm") {
  ColdCachePenalty penalty;
  CHECK(penalty.work(milliseconds(5)) == 0);
}

TEST_CASE("a rest of a millisecond makes a thread half cold, and a long one cold") {
  ColdCachePenalty half, cold;
  half.rest(ColdCachePenalty::kHalf);
  cold.rest(seconds(100));
  const Duration hardly = nanoseconds(1);
  CHECK(half.work(hardly) == Approx(0.5).epsilon(1e-3));
  CHECK(cold.work(hardly) == Approx(1).epsilon(1e-3));
}

TEST_CASE("short work is cold throughout, and long work warms up on its way") {
  ColdCachePenalty penalty;
  penalty.rest(seconds(100));
  CHECK(penalty.work(microseconds(10)) > 0.98);
  CHECK(penalty.work(milliseconds(1)) == Approx(0.5).epsilon(0.02));
  CHECK(penalty.work(milliseconds(99)) < 0.01);
}

TEST_CASE("many short rests penalty about as much as one that is as long") {
  ColdCachePenalty once, often;
  once.rest(milliseconds(1));
  for (int i = 0; i < 1000; ++i) often.rest(microseconds(1));
  // The approximation is coarse for long rests; exponential decay would give 0.63 for the latter.
  CHECK(often.work(nanoseconds(1)) == Approx(0.63).epsilon(0.01));
  CHECK(once.work(nanoseconds(1)) == Approx(0.5).epsilon(0.01));
}

}  // namespace leeway::sim
