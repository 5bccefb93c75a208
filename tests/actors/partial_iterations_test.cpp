// PartialIterations: the buckets of unfinished iterations that shards have.
#include "actors/scheduler/partial_iterations.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

TEST_CASE(
    "an iteration is whole when all shards have it from all stages, and partial while some do") {
  PartialIterations partial;
  CHECK(partial.add(0, ShardId(0), Clock(7), {}, 2));
  CHECK(partial.add(0, ShardId(1), Clock(6), {1}, 3));
  CHECK(partial.add(1, ShardId(1), Clock(5), {0, 2}, 4));
  CHECK(partial.whole() == Clock(5));
  CHECK(partial.untouched() == Iteration(7));
  CHECK(partial.count() == 2);
  // Of stage 0, both shards have iteration 5; shard 0 has all of iteration 6, shard 1 one bucket.
  CHECK(
      partial.applied(Iteration(5)) ==
      AppliedBuckets{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {1, 1, 0}, {1, 1, 2}});
  CHECK(partial.applied(Iteration(6)) == AppliedBuckets{{0, 0, 0}, {0, 0, 1}, {0, 1, 1}});
  CHECK(partial.applied(Iteration(7)).empty());
  CHECK(partial.complete(partial.applied(Iteration(4))));
  CHECK_FALSE(partial.complete(partial.applied(Iteration(5))));
}

TEST_CASE("buckets on one shard make an iteration partial") {
  PartialIterations partial;
  partial.add(0, ShardId(0), Clock(3), {}, 2);
  CHECK(partial.count() == 0);
  partial.add(0, ShardId(1), Clock(3), {0}, 2);
  CHECK(partial.whole() == Clock(3));
  CHECK(partial.count() == 1);
}

TEST_CASE("without answers, no iteration is partial and no list is complete") {
  const PartialIterations partial;
  CHECK(partial.whole() == Clock(0));
  CHECK(partial.count() == 0);
  CHECK(partial.applied(Iteration(0)).empty());
  CHECK_FALSE(partial.complete({}));
}

TEST_CASE("a shard's second answer and unknown buckets change nothing") {
  PartialIterations partial;
  CHECK(partial.add(2, ShardId(1), Clock(3), {0, 1, 5, 4000}, 2));
  CHECK_FALSE(partial.add(2, ShardId(1), Clock(9), {}, 8));
  CHECK(partial.untouched() == Iteration(4));
  CHECK(partial.applied(Iteration(3)) == AppliedBuckets{{2, 1, 0}, {2, 1, 1}});
  CHECK(partial.complete({{2, 1, 0}, {2, 1, 1}}));
}

TEST_CASE("the union of two lists is ascending and names each bucket once") {
  const AppliedBuckets a = {{0, 0, 1}, {0, 1, 0}, {2, 0, 0}}, b = {{0, 0, 0}, {0, 1, 0}, {1, 0, 0}};
  const AppliedBuckets both = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {2, 0, 0}};
  CHECK(united(a, b) == both);
  CHECK(united(b, a) == both);
  CHECK(united(a, {}) == a);
}
