// A shard whose stages are fenced, removed and admitted: waiting tied gradients, and rounds.
#include <catch2/catch.hpp>

#include "tests/actors/tied_scene.hpp"

namespace leeway::test {

TEST_CASE("when an owner of a tied block is fenced, each waiting or later gradient is applied") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  const BlockId table = scene.share_of(kFirst).buckets[of_first].blocks[0];
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push(kFirst, 0, of_first);
  const auto fenced = scene.fence(kFirst);
  CHECK(fenced.clock == Clock(0));
  CHECK(fenced.applied == std::vector{of_first});
  CHECK(scene.applied(kFirst) == std::vector{of_first});
  CHECK(scene.acknowledged(kFirst).empty());  // the stage is fenced
  scene.push(kLast, 0, of_last);
  CHECK(scene.acknowledged(kLast) == std::vector{of_last});
  const auto last = scene.fence(kLast);
  CHECK(last.applied == std::vector{of_last});
  scene.remove(kFirst);
  scene.remove(kLast);
  CHECK(version_of(scene.finish(), table) == Version(2));
}

TEST_CASE("a tied gradient does not wait for a stage that has been removed") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_last = tied_bucket(scene, kLast);
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push(kLast, 0, of_last);
  scene.remove(kFirst);
  CHECK(scene.acknowledged(kLast) == std::vector{of_last});
  scene.finish();
}

TEST_CASE("a fence reports a whole iteration by the clock, before it is applied") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_last = tied_bucket(scene, kLast);
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push_all(kLast, 0);
  scene.pause_work();
  const auto first = scene.fence(kFirst);
  CHECK(first.clock == Clock(0));
  CHECK(first.applied.empty());
  const auto last = scene.fence(kLast);
  CHECK(last.clock == Clock(1));
  CHECK(last.applied.empty());  // no bucket of the next iteration
  scene.remove(kFirst);
  scene.remove(kLast);
  scene.resume_work();
  const auto& applied = scene.applied(kLast);
  CHECK(applied.size() == scene.share_of(kLast).buckets.size());
  CHECK(std::count(applied.begin(), applied.end(), of_last) == 1);
  scene.finish();
}

TEST_CASE("a tied gradient of an earlier session does not pair with one of the next") {
  ShardScene scene(job_of(tied_plan(2)));
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  const BlockId table = scene.share_of(kFirst).buckets[of_first].blocks[0];
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push(kFirst, 0, of_first);
  scene.pause_work();  // the released gradient stays in the queue of its bucket
  for (const WorkerId worker : {kFirst, kLast}) scene.fence(worker);
  for (const WorkerId worker : {kFirst, kLast}) scene.remove(worker);
  for (const WorkerId worker : {kFirst, kLast}) scene.admit(worker, 0, Session(2));
  scene.resume_work();
  REQUIRE((scene.pull(kFirst, 0) && scene.pull(kLast, 0)));
  scene.push_empty(kFirst, 0, of_first);
  CHECK(scene.acknowledged(kFirst).empty());
  scene.push(kLast, 0, of_last);
  CHECK(scene.acknowledged(kFirst) == std::vector{of_first});
  CHECK(version_of(scene.finish(), table) == Version(2));
}

TEST_CASE("under bsp a fence drops an unfinished push, and the round keeps a whole one") {
  Plan plan = tied_plan(2, 2);
  plan.consistency = plan::Bsp{};
  ShardScene scene(job_of(plan));
  scene.admit_all();
  const std::uint32_t of_first = tied_bucket(scene, kFirst), of_last = tied_bucket(scene, kLast);
  const BlockId table = scene.share_of(kFirst).buckets[of_first].blocks[0];
  for (std::uint32_t w = 0; w < 4; ++w) REQUIRE(scene.pull(WorkerId(w), 0));
  scene.push(kFirst, 0, of_first);
  scene.push_all(kLast, 0);
  for (const WorkerId worker : {WorkerId(2), WorkerId(3)}) scene.push_all(worker, 0);
  const auto first = scene.fence(kFirst), last = scene.fence(kLast);
  CHECK(first.clock == Clock(0));
  CHECK(first.applied.empty());
  CHECK(last.clock == Clock(1));
  CHECK(scene.applied(kLast).empty());
  scene.remove(kFirst);  // the others complete the round
  scene.remove(kLast);
  CHECK(scene.applied(kFirst).empty());
  CHECK(scene.applied(kLast).size() == scene.share_of(kLast).buckets.size());
  CHECK(std::count(scene.applied(kLast).begin(), scene.applied(kLast).end(), of_last) == 1);
  CHECK(version_of(scene.finish(), table) == Version(1));
}

TEST_CASE(
    "under bsp the end of the run applies whole pushes of a round that no worker can complete") {
  Plan plan = tiny_plan();
  plan.workers = 3;
  plan.shards = 1;
  plan.consistency = plan::Bsp{};
  ShardScene scene(job_of(plan));
  scene.admit_all();
  const WorkerId whole(0), partial(1), straggler(2);
  for (const WorkerId worker : {whole, partial, straggler}) REQUIRE(scene.pull(worker, 0));
  const std::size_t buckets = scene.share_of(whole).buckets.size();
  REQUIRE(buckets > 1);
  scene.push_all(whole, 0);
  scene.push(partial, 0, 0);
  CHECK(scene.fence(whole).clock == Clock(1));
  scene.remove(whole);
  CHECK(scene.fence(partial).clock == Clock(0));
  CHECK(scene.fence(straggler).clock == Clock(0));
  scene.remove(partial);
  scene.remove(straggler);
  SECTION("a new worker completes the round") {
    scene.admit(straggler, 0, Session(2));
    REQUIRE(scene.pull(straggler, 0));
    scene.push_all(straggler, 0);
    CHECK(scene.applied(whole).size() == buckets);
    CHECK(scene.acknowledged(straggler).size() == buckets);
    scene.finish();
  }
  SECTION("without a new worker the push is applied at the end") {
    CHECK(scene.applied(whole).empty());
    const auto state = scene.finish();
    CHECK(scene.applied(whole).size() == buckets);
    for (const auto& block : state.blocks) CHECK(block.version == Version(1));
  }
  SECTION("the last snapshot of the run has the push") {
    scene.tell(kScheduler,
               msg::Snapshot{.iterations = std::vector(3, Iteration(1)), .immediate = true});
    CHECK(scene.applied(whole).size() == buckets);
    for (const auto& block : scene.finish().blocks) CHECK(block.version == Version(1));
  }
  CHECK(scene.applied(partial).empty());
}

TEST_CASE("under bsp a tied gradient may be empty, and a round is the mean over pipelines") {
  Plan plan = tied_plan(2, 2);
  plan.consistency = plan::Bsp{};
  ShardScene scene(job_of(plan));
  scene.admit_all();
  for (std::uint32_t w = 0; w < 4; ++w) REQUIRE(scene.pull(WorkerId(w), 0));
  scene.push_empty(kFirst, 0, tied_bucket(scene, kFirst));
  push_others(scene, kFirst, 0);
  for (std::uint32_t w = 1; w < 4; ++w) scene.push_all(WorkerId(w), 0);
  CHECK(scene.applied(kFirst).size() == scene.share_of(kFirst).buckets.size());
  scene.finish();  // the checkers add the gradients up
}

}  // namespace leeway::test
