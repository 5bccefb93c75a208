// The penalty after rests of different lengths, and its decay during work.
#include "sim/cold_cache_penalty.hpp"

#include <catch2/catch.hpp>

namespace leeway::sim {

TEST_CASE("a thread without a rest is warm") {
  ColdCachePenalty penalty;
  CHECK(penalty.work(milliseconds(5)) == 0);
}

TEST_CASE("a rest of a millisecond makes a thread half cold, and a long one cold") {
  ColdCachePenalty half, cold;
  half.rest(ColdCachePenalty::kHalf);
  cold.rest(seconds(100));
  const Duration tiny = nanoseconds(1);
  CHECK(half.work(tiny) == Approx(0.5).epsilon(1e-3));
  CHECK(cold.work(tiny) == Approx(1).epsilon(1e-3));
}

TEST_CASE("short work pays the whole penalty, and long work a part of it") {
  ColdCachePenalty penalty;
  penalty.rest(seconds(100));
  CHECK(penalty.work(microseconds(10)) > 0.98);
  CHECK(penalty.work(milliseconds(1)) == Approx(0.5).epsilon(0.02));
  CHECK(penalty.work(milliseconds(99)) < 0.01);
}

TEST_CASE("many short rests cost about as much as one rest of the same total length") {
  ColdCachePenalty once, often;
  once.rest(milliseconds(1));
  for (int i = 0; i < 1000; ++i) often.rest(microseconds(1));
  // The approximation is coarse for long rests; exponential decay would give 0.63 for the latter.
  CHECK(often.work(nanoseconds(1)) == Approx(0.63).epsilon(0.01));
  CHECK(once.work(nanoseconds(1)) == Approx(0.5).epsilon(0.01));
}

}  // namespace leeway::sim
