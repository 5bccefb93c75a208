#include "actors/shard/tied_blocks.hpp"

#include <catch2/catch.hpp>

#include "tests/actors/shard_components.hpp"
#include "tests/actors/tied_scene.hpp"

namespace leeway::test {
namespace {

/// A shard with a table that two stages share.
struct Tied {
  explicit Tied(std::uint32_t pipelines = 1)
      : job(job_of(tied_plan(2, pipelines))),
        buckets(static_cast<std::uint32_t>(job->layout->buckets(ShardId(0)).size())),
        tied(*job->stages, ShardId(0), buckets, clocks) {
    admit_workers(clocks, 2 * pipelines);
    while (!tied.is_tied(table)) ++table;
  }
  std::vector<PushName> gather(WorkerId worker, std::int64_t iteration, std::uint32_t bucket) {
    std::vector<PushName> names;
    for (const auto& push : tied.gather(push_of(worker, iteration, bucket)))
      names.push_back(name_of(push));
    return names;
  }

  std::shared_ptr<const Job> job;
  std::uint32_t buckets;
  std::uint32_t table = 0;  // the tied bucket
  ClockTable clocks;
  TiedBlocks tied;
};

using Names = std::vector<PushName>;

}  // namespace

TEST_CASE("two tied gradients make one update, in worker order") {
  Tied t;
  CHECK(t.gather(kLast, 0, t.table).empty());
  CHECK(t.gather(kFirst, 0, t.table) == Names{{0, 0}, {1, 0}});
}

TEST_CASE("a bucket with one owner is an update at once") {
  Tied t;
  const std::uint32_t other = t.table == 0 ? 1 : 0;
  REQUIRE_FALSE(t.tied.is_tied(other));
  CHECK(t.gather(kFirst, 0, other) == Names{{0, 0}});
}

TEST_CASE("tied gradients of different pipelines do not wait for each other") {
  Tied t(2);
  CHECK(t.gather(WorkerId(0), 0, t.table).empty());
  CHECK(t.gather(WorkerId(3), 0, t.table).empty());
  CHECK(t.gather(WorkerId(2), 0, t.table) == Names{{2, 0}, {3, 0}});
}

TEST_CASE("a waiting tied gradient is released when the other owner is fenced") {
  Tied t;
  t.gather(kLast, 0, t.table);
  CHECK(t.tied.release(kFirst).empty());
  t.clocks.fence(kFirst);
  const auto released = t.tied.release(kFirst);
  REQUIRE(released.size() == 1);
  REQUIRE(released[0].size() == 1);
  CHECK(released[0][0].worker == kLast);
  CHECK(t.tied.release(kFirst).empty());
}

TEST_CASE("a tied gradient does not wait for an owner that has left or pushed a later gradient") {
  Tied t;
  SECTION("left") {
    t.clocks.remove(kFirst);
  }
  SECTION("pushed") {
    t.clocks.advance(kFirst);
  }
  CHECK(t.gather(kLast, 0, t.table) == Names{{1, 0}});
}

TEST_CASE("the common clock is the least of all owners of a tied block") {
  Tied t;
  CHECK(t.tied.siblings(kFirst) == std::vector{kLast});
  t.clocks.advance(kFirst);
  CHECK(t.tied.common_clock(kFirst) == Clock(0));
  t.clocks.advance(kLast);
  CHECK(t.tied.common_clock(kFirst) == Clock(1));
}

TEST_CASE("in a pipeline that is never emptied no bucket is tied") {
  Plan plan = tied_plan(2);
  plan.pipeline.schedule = "weight_stashing";
  const auto job = job_of(plan);
  ClockTable clocks;
  const auto buckets = static_cast<std::uint32_t>(job->layout->buckets(ShardId(0)).size());
  const TiedBlocks tied(*job->stages, ShardId(0), buckets, clocks);
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) CHECK_FALSE(tied.is_tied(bucket));
  CHECK(tied.siblings(kFirst).empty());
}

}  // namespace leeway::test
