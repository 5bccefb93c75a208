#include "actors/shard/snapshots.hpp"

#include <catch2/catch.hpp>

#include "actors/shard/updates.hpp"
#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

/// One shard with the whole tiny model, and the blocks of every bucket in its pushes.
struct SnapshotScene {
  SnapshotScene()
      : job(one_shard_job()),
        buckets(job, ShardId(0), FirstState::of_run),
        snapshots(job, ShardId(0), buckets, clocks, scheduler, monitor),
        acknowledgements(clocks),
        updates(buckets, snapshots, acknowledgements) {
    admit_workers(clocks, 2);
  }

  /// Accepts and queues a whole iteration.
  void push(WorkerId worker, std::int64_t iteration) {
    for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
      Contribution push = push_of(worker, iteration, bucket);
      push.weight = 0.5;
      push.samples = 2;
      push.blocks.clear();
      for (const BlockId id : job->layout->buckets(ShardId(0))[bucket].blocks)
        push.blocks.push_back(gradient_of_ones(*job, id));
      clocks.accept(worker, push.iteration, bucket, buckets.size());
      acknowledgements.expect(push);
      std::vector<Contribution> update;
      update.push_back(std::move(push));
      updates.apply(std::move(update), out);
    }
    REQUIRE(clocks.advance_if_whole(worker));
    snapshots.collect_complete(out);
  }
  void compute_all() {
    while (const auto work = out.compute_one()) buckets.run(buckets.finish(*work).bucket, out);
  }
  /// A snapshot with the pushes of each worker below its iteration.
  void propose(std::uint64_t id, std::int64_t of_a, std::int64_t of_b) {
    std::vector<Iteration> iterations(job->stages->pipelines(), Iteration(std::min(of_a, of_b)));
    iterations[0] = Iteration(of_a);
    iterations[1] = Iteration(of_b);
    REQUIRE(snapshots.handle({.snapshot = id, .iterations = iterations}, out));
  }
  void propose(std::uint64_t id, std::int64_t iteration) { propose(id, iteration, iteration); }
  std::vector<bool> votes() const {
    std::vector<bool> accepted;
    for (const auto& vote : out.sent<msg::SnapshotVote>(kScheduler))
      accepted.push_back(vote.accepted);
    return accepted;
  }
  std::vector<msg::SnapshotState> states() const { return out.sent<msg::SnapshotState>(kMonitor); }
  /// Requires the same number of updates in every block of a state.
  static void require_version(const msg::SnapshotState& state, std::int64_t version) {
    REQUIRE_FALSE(state.blocks.empty());
    for (const auto& block : state.blocks) REQUIRE(block.version == Version(version));
  }

  std::shared_ptr<const Job> job;
  ClockTable clocks;
  RecordingOutbox out;
  BucketQueues buckets;
  Channel scheduler{kScheduler};
  Channel monitor{kMonitor};
  Snapshots snapshots;
  Acknowledgements acknowledgements;
  Updates updates;
};

}  // namespace

TEST_CASE("a snapshot holds the pushes below its iteration, also those that straggle") {
  SnapshotScene scene;
  scene.propose(1, 1);
  scene.push(kA, 0);
  scene.push(kA, 1);  // forks every bucket
  CHECK(scene.states().empty());
  scene.push(kB, 0);  // straggles
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  const auto state = scene.states()[0];
  CHECK(state.snapshot == 1);
  CHECK(state.iteration == Iteration(1));
  SnapshotScene::require_version(state, 2);
  scene.snapshots.send_final(scene.out);
  REQUIRE(scene.states().size() == 2);
  CHECK(scene.states()[1].final);
  SnapshotScene::require_version(scene.states()[1], 3);
}

TEST_CASE("a snapshot ends at another iteration for each pipeline") {
  SnapshotScene scene;
  scene.propose(1, 3, 1);
  for (const std::int64_t iteration : {0, 1, 2, 3}) scene.push(kA, iteration);
  CHECK(scene.states().empty());
  scene.push(kB, 0);
  scene.push(kB, 1);
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  CHECK(scene.states()[0].iteration == Iteration(1));
  SnapshotScene::require_version(scene.states()[0], 4);
}

TEST_CASE("a snapshot that all clocks have reached is taken at once") {
  SnapshotScene scene;
  scene.push(kA, 0);
  scene.push(kA, 1);
  scene.propose(1, 2, 0);
  scene.push(kA, 2);
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  SnapshotScene::require_version(scene.states()[0], 2);
}

TEST_CASE("a shard refuses a snapshot that must not hold one of its pushes") {
  SnapshotScene scene;
  scene.push(kA, 0);
  scene.push(kA, 1);
  scene.propose(1, 2, 0);
  scene.propose(2, 1, 5);
  CHECK(scene.votes() == std::vector<bool>{true, false});
}

TEST_CASE("a shard refuses no snapshot because of a partial iteration of an evicted worker") {
  SnapshotScene scene;
  scene.push(kA, 0);
  scene.clocks.accept(kA, Iteration(1), 0, scene.buckets.size());
  scene.clocks.fence(kA);
  scene.clocks.remove(kA);
  scene.propose(1, 1, 0);
  CHECK(scene.votes() == std::vector<bool>{true});
}

TEST_CASE("the pushes of a worker that returns are not part of a pending snapshot") {
  SnapshotScene scene;
  scene.propose(1, 9, 1);
  scene.push(kA, 0);
  scene.clocks.fence(kA);
  scene.clocks.remove(kA);
  scene.snapshots.admitted(kA, Iteration(1));
  scene.clocks.admit(kA, Session(2), Iteration(1));
  scene.push(kA, 1);
  scene.push(kB, 0);
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  SnapshotScene::require_version(scene.states()[0], 2);
}

TEST_CASE("a proposal without an iteration for each pipeline is an error") {
  SnapshotScene scene;
  CHECK_FALSE(scene.snapshots.handle({.snapshot = 1, .iterations = {Iteration(1)}}, scene.out));
}

TEST_CASE("a proposal that a push has passed yields no snapshot") {
  SnapshotScene scene;
  scene.push(kA, 0);
  scene.push(kA, 1);
  scene.propose(1, 1);
  for (const std::int64_t iteration : {0, 1}) scene.push(kB, iteration);
  scene.compute_all();
  CHECK(scene.states().empty());
}

TEST_CASE("a new proposal replaces an earlier one and its forks") {
  SnapshotScene scene;
  scene.propose(1, 1);
  for (const std::int64_t iteration : {0, 1}) scene.push(kA, iteration);  // forks
  scene.propose(2, 2);
  scene.push(kA, 2);
  for (const std::int64_t iteration : {0, 1}) scene.push(kB, iteration);
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  CHECK(scene.states()[0].snapshot == 2);
  SnapshotScene::require_version(scene.states()[0], 4);
}

TEST_CASE("an immediate snapshot holds the pushes that were queued before it") {
  SnapshotScene scene;
  scene.push(kA, 0);
  REQUIRE(scene.snapshots.handle(
      {.snapshot = 3,
       .iterations = std::vector(scene.job->stages->pipelines(), Iteration(9)),
       .immediate = true},
      scene.out));
  scene.push(kA, 1);
  CHECK(scene.states().empty());
  scene.compute_all();
  REQUIRE(scene.states().size() == 1);
  SnapshotScene::require_version(scene.states()[0], 1);
  CHECK(scene.out.sent<msg::SnapshotVote>(kScheduler).empty());
}

TEST_CASE("a push is acknowledged when applied, and a repeated push not earlier") {
  ClockTable clocks;
  admit_workers(clocks, 1);
  RecordingOutbox out;
  Acknowledgements acknowledgements(clocks);
  const Contribution push = push_of(kA, 0);
  acknowledgements.expect(push);
  CHECK(acknowledgements.is_expected(push));
  CHECK_FALSE(acknowledgements.is_expected(push_of(kA, 0, 1)));
  acknowledgements.applied(push, out);
  CHECK_FALSE(acknowledgements.is_expected(push));
  acknowledgements.repeated(push, out);
  const auto pushed = out.sent<msg::Pushed>(address_of(kA));
  REQUIRE(pushed.size() == 2);
  CHECK_FALSE(pushed[0].repeat);
  CHECK(pushed[1].repeat);
  CHECK(out.events<event::BucketApplied>().size() == 1);
}

TEST_CASE("the push of an evicted worker is reported as applied but not acknowledged") {
  ClockTable clocks;
  admit_workers(clocks, 1);
  RecordingOutbox out;
  Acknowledgements acknowledgements(clocks);
  acknowledgements.expect(push_of(kA, 0));
  clocks.fence(kA);
  acknowledgements.applied(push_of(kA, 0), out);
  CHECK(out.sent<msg::Pushed>(address_of(kA)).empty());
  CHECK(out.events<event::BucketApplied>().size() == 1);
}

}  // namespace leeway::test
