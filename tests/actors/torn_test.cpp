// TornIterations: what shards have of iterations that were not finished.
#include "actors/torn.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

TEST_CASE("an iteration is whole when all shards have it of all stages, and torn while some do") {
  TornIterations torn;
  CHECK(torn.add(0, ShardId(0), Clock(7), {}, 2));
  CHECK(torn.add(0, ShardId(1), Clock(6), {1}, 3));
  CHECK(torn.add(1, ShardId(1), Clock(5), {0, 2}, 4));
  CHECK(torn.whole() == Clock(5));
  CHECK(torn.untouched() == Iteration(7));
  CHECK(torn.count() == 2);
  // Stage 0 has iteration 5 on both shards, and 6 on shard 0 and in part on shard 1.
  CHECK(torn.applied(Iteration(5)) ==
        AppliedParts{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {1, 1, 0}, {1, 1, 2}});
  CHECK(torn.applied(Iteration(6)) == AppliedParts{{0, 0, 0}, {0, 0, 1}, {0, 1, 1}});
  CHECK(torn.applied(Iteration(7)).empty());
  CHECK(torn.complete(torn.applied(Iteration(4))));
  CHECK_FALSE(torn.complete(torn.applied(Iteration(5))));
}

TEST_CASE("parts of one shard alone make an iteration torn") {
  TornIterations torn;
  torn.add(0, ShardId(0), Clock(3), {}, 2);
  CHECK(torn.count() == 0);
  torn.add(0, ShardId(1), Clock(3), {0}, 2);
  CHECK(torn.whole() == Clock(3));
  CHECK(torn.count() == 1);
}

TEST_CASE("of nothing, nothing is torn and no list is complete") {
  const TornIterations torn;
  CHECK(torn.whole() == Clock(0));
  CHECK(torn.count() == 0);
  CHECK(torn.applied(Iteration(0)).empty());
  CHECK_FALSE(torn.complete({}));
}

TEST_CASE("a second word of the same shard and parts that there are not change nothing") {
  TornIterations torn;
  CHECK(torn.add(2, ShardId(1), Clock(3), {0, 1, 5, 4000}, 2));
  CHECK_FALSE(torn.add(2, ShardId(1), Clock(9), {}, 8));
  CHECK(torn.untouched() == Iteration(4));
  CHECK(torn.applied(Iteration(3)) == AppliedParts{{2, 1, 0}, {2, 1, 1}});
  CHECK(torn.complete({{2, 1, 0}, {2, 1, 1}}));
}

TEST_CASE("two lists united are ascending and name each part once") {
  const AppliedParts a = {{0, 0, 1}, {0, 1, 0}, {2, 0, 0}}, b = {{0, 0, 0}, {0, 1, 0}, {1, 0, 0}};
  const AppliedParts both = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {2, 0, 0}};
  CHECK(united(a, b) == both);
  CHECK(united(b, a) == both);
  CHECK(united(a, {}) == a);
}
