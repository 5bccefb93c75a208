// Each checker accepts valid sequences of events and reports violations.
#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "sim/checkers/clocks.hpp"
#include "sim/checkers/evicted.hpp"
#include "sim/checkers/exactly_once.hpp"
#include "sim/checkers/limits.hpp"
#include "sim/checkers/parked.hpp"
#include "sim/checkers/rule.hpp"
#include "sim/checkers/snapshots.hpp"
#include "sim/checkers/weights.hpp"
#include "tests/sim/checker_story.hpp"

namespace leeway::sim {
namespace {

Story clock_story() {
  return Story({std::make_shared<ClockChecker>()});
}

template <class C>
Story story_of(const std::shared_ptr<const Job>& job = ssp_job()) {
  const auto clocks = std::make_shared<ClockChecker>();
  if constexpr (std::is_constructible_v<C, decltype(clocks), std::shared_ptr<BoundChecker>>) {
    const auto bounds = std::make_shared<BoundChecker>(job, clocks);
    return Story({clocks, bounds, std::make_shared<C>(clocks, bounds)});
  } else if constexpr (std::is_constructible_v<C, std::shared_ptr<const Job>>) {
    return Story({std::make_shared<C>(job)});
  } else {
    return Story({std::make_shared<C>()});
  }
}

msg::Push push_of(const Job& job, std::uint32_t bucket, std::int64_t iteration, float gradient,
                  std::int64_t version = 0) {
  const auto& buckets = job.layout->buckets(ShardId(0));
  msg::Push push{.iteration = Iteration(iteration),
                 .bucket = bucket,
                 .bucket_count = static_cast<std::uint32_t>(buckets.size()),
                 .weight = 1,
                 .samples = 2};
  for (const BlockId id : buckets[bucket].blocks) {
    const std::int64_t floats = job.layout->block(id).floats;
    Blob data = Blob::floats(floats);
    std::fill_n(data.mutable_floats(), floats, gradient);
    push.blocks.push_back({id, Version(version), DType::f32, Shape{floats}, data});
  }
  return push;
}

/// The state of shard 0 after `updates` updates of bucket 0, which moved each of its floats by
/// `moved`.
msg::SnapshotState state_of(const Job& job, std::int64_t iteration, std::int64_t updates,
                            float moved) {
  msg::SnapshotState state{.snapshot = 1, .iteration = Iteration(iteration)};
  for (const auto& bucket : job.layout->buckets(ShardId(0)))
    for (const BlockId id : bucket.blocks) {
      const Block& block = job.layout->block(id);
      Blob data = Blob::floats(block.floats);
      std::fill_n(data.mutable_floats(), block.floats, 0.0f);
      for (const auto& slice : block.slices)
        job.initial_values(slice.parameter, data.mutable_floats() + slice.offset);
      if (bucket.index == 0)
        for (std::int64_t i = 0; i < block.floats; ++i) data.mutable_floats()[i] += moved;
      state.blocks.push_back(
          {id, Version(bucket.index == 0 ? updates : 0), DType::f32, Shape{block.floats}, data});
    }
  return state;
}

msg::Snapshot snapshot_at(const Job& job, std::int64_t iteration) {
  return {.snapshot = 1, .iterations = std::vector(job.stages->pipelines(), Iteration(iteration))};
}

RunTotals finished(std::uint64_t samples) {
  RunTotals totals;
  totals.end.reason = msg::RunEnded::Reason::finished;
  totals.end.samples_trained = samples;
  return totals;
}

}  // namespace

TEST_CASE("a clock that decreases is caught, also after a readmission") {
  auto story = clock_story();
  story.admitted(kA);
  story.moved(kA, 3);
  CHECK(seen([&] { story.moved(kA, 2); }) == "the clock went from 3 to 2");
  story.emits(kShard, event::Removed{.worker = kA});
  CHECK(seen([&] { story.admitted(kA, 1); }) == "the clock went from 3 to 1");
}

TEST_CASE("a min_clock that decreases is caught, also after a time without workers") {
  auto story = clock_story();
  story.admitted(kA);
  story.moved(kA, 3);
  CHECK(seen([&] { story.admitted(kB, 2); }) == "min_clock went from 3 to 2");
  auto empty = clock_story();
  empty.admitted(kA, 3);
  empty.emits(kShard, event::Removed{.worker = kA});
  CHECK(seen([&] { empty.admitted(kB, 1); }) == "min_clock went from 3 to 1");
}

TEST_CASE("a pull answered beyond the bound is caught, and one at the bound is not") {
  auto story = story_of<RuleChecker>();
  story.admitted(kA);
  story.admitted(kB);
  story.moved(kA, 1);
  story.pulls(kA, 1, 1);
  story.answered(kA, 1);
  story.moved(kA, 2);
  story.pulls(kA, 2, 2);
  CHECK(seen([&] { story.answered(kA, 2); }) ==
        "iteration 2 answered at min_clock 0, the bound is 1");
}

TEST_CASE("a pull answered without the worker's own pushes is caught") {
  auto story = story_of<RuleChecker>();
  story.admitted(kA);
  story.pulls(kA, 1, 1);
  CHECK(seen([&] { story.answered(kA, 1); }) ==
        "iteration 1 answered at clock 0, without all of the 1 pushes of the worker");
}

TEST_CASE("an answer without a pull, or to a worker that is not admitted, is caught") {
  auto story = story_of<RuleChecker>();
  story.admitted(kA);
  CHECK(seen([&] { story.answered(kA, 0); }) == "iteration 0 answered without a pull");
  story.pulls(kB, 0, 0);
  CHECK(seen([&] { story.answered(kB, 0); }) ==
        "iteration 0 answered to a worker that is not admitted");
}

TEST_CASE("a bucket applied twice is caught, unless the sessions differ") {
  auto story = story_of<ExactlyOnceChecker>();
  for (const std::int64_t iteration : {0, 1, 3, 2}) story.applied(kA, iteration);
  story.emits(kShard, event::BucketApplied{.worker = kA, .session = Session(2)});
  CHECK(seen([&] { story.applied(kA, 2); }) == "bucket 0 of iteration 2, session 1, applied twice");
}

TEST_CASE("an acknowledgement of a bucket that was not applied is caught") {
  auto story = story_of<ExactlyOnceChecker>();
  story.applied(kA, 0);
  story.delivers(kShard, kWorkerA, msg::Pushed{Iteration(0), 0});
  CHECK(seen([&] {
          story.delivers(kShard, kWorkerA, msg::Pushed{Iteration(0), 1});
        }) == "bucket 1 of iteration 0, session 1, acknowledged but not applied");
  CHECK(seen([&] { story.delivers(kShard, kWorkerA, msg::Pushed{Iteration(1), 0}); }) != "");
  CHECK(seen([&] {
          story.delivers(kShard, kWorkerA, msg::Pushed{Iteration(0), 0}, Session(2));
        }) != "");
}

TEST_CASE("a set of iterations merges adjacent intervals in any order") {
  IterationSet set;
  for (const std::int64_t i : {4, 0, 2, 1, 3}) CHECK(set.insert(Iteration(i)));
  CHECK(set.intervals() == 1);
  for (std::int64_t i = 0; i < 5; ++i) CHECK_FALSE(set.insert(Iteration(i)));
  CHECK_FALSE(set.contains(Iteration(5)));
  CHECK(set.insert(Iteration(6)));
  CHECK_FALSE(set.contains(Iteration(5)));
  CHECK(set.intervals() == 2);
}

TEST_CASE("a pull that stays parked although the rule allows it is caught") {
  auto story = story_of<ParkedChecker>();
  story.admitted(kA);
  story.admitted(kB);
  story.moved(kA, 2);
  story.pulls(kA, 2, 2);
  story.parked(kA, 2);
  story.pulls(kB, 0, 0);
  story.answered(kB, 0);
  story.moved(kB, 1);  // allows the pull of A
  CHECK(seen([&] { story.pulls(kB, 1, 1); }) ==
        "the pull of iteration 2 is allowed, but still parked: min_clock 1, clock 2, own_clock 2");
}

TEST_CASE("the open pulls of an idle worker end with its removal, and later ones are checked") {
  auto story = story_of<ParkedChecker>();
  story.admitted(kA);
  story.admitted(kB);
  story.moved(kA, 2);
  story.pulls(kA, 2, 2);
  story.parked(kA, 2);
  story.emits(kShard, event::Removed{.worker = kA});
  story.admitted(kA, 2);
  story.moved(kB, 1);
  story.pulls(kB, 1, 1);
  story.answered(kB, 1);
  story.pulls(kA, 3, 2);
  story.parked(kA, 3);
  story.moved(kB, 2);
  CHECK(seen([&] { story.pulls(kB, 2, 2); }) != "");
}

TEST_CASE("a forgotten pull that waited only for its worker's own push is caught") {
  auto story = story_of<ParkedChecker>();
  story.admitted(kA);
  story.admitted(kB);
  story.pulls(kA, 1, 1);
  story.parked(kA, 1);
  story.pulls(kB, 1, 0);
  story.answered(kB, 1);
  story.moved(kA, 1);
  CHECK(seen([&] { story.pulls(kB, 1, 0); }) != "");
}

TEST_CASE("a pull without an answer is caught at the end of the run, unless its worker has ended") {
  const auto left = [](const std::function<void(Story&)>& then) {
    auto story = story_of<ParkedChecker>();
    story.admitted(kA);
    story.admitted(kB);
    story.moved(kA, 2);
    story.pulls(kA, 2, 2);
    then(story);
    return seen([&] { story.run_ends(finished(0)); });
  };
  CHECK(left([](Story&) {}) == "the pull of iteration 2 was still parked at the end");
  CHECK(left([](Story& story) { story.delivers(kWorkerB, kScheduler, msg::Stopped{}); }) != "");
  CHECK(left([](Story& story) { story.delivers(kWorkerA, kScheduler, msg::Join{}); }) != "");
  CHECK(left([](Story& story) {
          story.delivers(kWorkerA, kScheduler, msg::Join{first_nonce(2)});
        }) == "");
  CHECK(left([](Story& story) { story.delivers(kWorkerA, kScheduler, msg::Stopped{}); }) == "");
  CHECK(left([](Story& story) { story.ends(kWorkerA); }) == "");
  CHECK(left([](Story& story) {
          story.emits(kShard, event::Refused{.worker = kA, .iteration = Iteration(2)});
        }) == "");
}

TEST_CASE("a snapshot is compared with the pushes below it, and the final state with all pushes") {
  const auto job = ssp_job();
  const float step = static_cast<float>(job->plan.optimizer.learning_rate);
  const auto observed = [&](msg::SnapshotState state) {
    Story story({std::make_shared<SnapshotChecker>(job)});
    story.delivers(kScheduler, kShard, msg::Admit{kA, Session(1)});
    story.delivers(kWorkerA, kShard, push_of(*job, 0, 0, 1));
    story.applied(kA, 0);
    story.delivers(kScheduler, kShard, snapshot_at(*job, 2));
    for (const std::int64_t iteration : {1, 2}) {
      story.delivers(kWorkerA, kShard, push_of(*job, 0, iteration, 1));
      story.applied(kA, iteration);
    }
    return seen([&] { story.delivers(kShard, kMonitor, std::move(state)); });
  };
  const auto final_state = [&](std::int64_t updates, float moved) {
    auto state = state_of(*job, 0, updates, moved);
    state.final = true;
    return state;
  };
  CHECK(observed(state_of(*job, 2, 2, -2 * step)) == "");
  CHECK(observed(state_of(*job, 2, 3, -2 * step)) != "");
  CHECK(observed(state_of(*job, 2, 2, -3 * step)) != "");
  CHECK(observed(state_of(*job, 2, 2, -step)) != "");
  auto unknown = state_of(*job, 2, 2, -2 * step);
  unknown.snapshot = 2;
  CHECK(observed(std::move(unknown)) != "");
  CHECK(observed(final_state(3, -3 * step)) == "");
  CHECK(observed(final_state(3, -2 * step)) != "");
  auto incomplete = state_of(*job, 2, 2, -2 * step);
  incomplete.blocks.pop_back();
  CHECK(observed(std::move(incomplete)) != "");
}

TEST_CASE("a push that a shard accepted before it removed the worker belongs to a later snapshot") {
  const auto job = ssp_job();
  const float step = static_cast<float>(job->plan.optimizer.learning_rate);
  const auto observed = [&](std::int64_t updates) {
    Story story({std::make_shared<SnapshotChecker>(job)});
    story.delivers(kScheduler, kShard, msg::Admit{kA, Session(1)});
    for (const std::int64_t iteration : {0, 1})
      story.delivers(kWorkerA, kShard, push_of(*job, 0, iteration, 1));
    story.applied(kA, 0);
    story.emits(kShard, event::Removed{kA});
    story.delivers(kScheduler, kShard, snapshot_at(*job, 1));
    story.applied(kA, 1);
    const float moved = -static_cast<float>(updates) * step;
    return seen([&] { story.delivers(kShard, kMonitor, state_of(*job, 1, updates, moved)); });
  };
  CHECK(observed(2) == "");
  CHECK(observed(1) != "");
}

TEST_CASE("a snapshot that the shard had passed is caught") {
  const auto job = ssp_job();
  Story story({std::make_shared<SnapshotChecker>(job)});
  story.delivers(kScheduler, kShard, msg::Admit{kA, Session(1)});
  story.delivers(kWorkerA, kShard, push_of(*job, 0, 0, 1));
  story.applied(kA, 0);
  story.delivers(kScheduler, kShard, snapshot_at(*job, 0));
  CHECK(seen([&] { story.delivers(kShard, kMonitor, state_of(*job, 0, 0, 0)); }) ==
        "snapshot 1, which the shard had passed or was never sent");
}

TEST_CASE("an update without a push is caught") {
  auto story = story_of<SnapshotChecker>();
  CHECK(seen([&] { story.applied(kA, 0); }) != "");
}

TEST_CASE("a gradient of weights that were not pulled is caught") {
  const auto job = ssp_job();
  auto story = story_of<WeightsChecker>();
  msg::Weights weights{.iteration = Iteration(4), .blocks = push_of(*job, 0, 4, 0, 7).blocks};
  story.delivers(kShard, kWorkerA, weights);
  story.delivers(kWorkerA, kShard, push_of(*job, 0, 4, 1, 7));
  CHECK(seen([&] { story.delivers(kWorkerA, kShard, push_of(*job, 0, 4, 1, 8)); }) != "");
  CHECK(seen([&] { story.delivers(kWorkerA, kShard, push_of(*job, 0, 5, 1, 7)); }) ==
        "a gradient of iteration 5, whose weights never arrived");
  CHECK(seen([&] { story.delivers(kWorkerB, kShard, push_of(*job, 0, 4, 1, 7)); }) != "");
}

TEST_CASE("tensors that are modified in flight are caught") {
  const auto job = ssp_job();
  Observers observers({std::make_shared<WeightsChecker>(job)});
  auto push = push_of(*job, 0, 0, 1);
  const Letter letter(kShard, kMonitor, encode({.body = push}));
  observers.sent({}, letter);
  observers.delivered({}, letter);
  observers.sent({}, letter);
  const auto floats = push.blocks[0].shape.count();
  std::fill_n(push.blocks[0].data.mutable_floats(), floats, 2.0f);
  CHECK(seen([&] { observers.delivered({}, letter); }) ==
        "tensors of a message were modified in flight");
}

TEST_CASE(
    "weights and acknowledgements to a fenced worker are caught, until it is admitted again") {
  auto story = story_of<EvictedChecker>();
  story.sends(kShard, kWorkerA, msg::Pushed{});
  story.emits(kShard, event::Fenced{.worker = kA});
  CHECK(seen([&] { story.sends(kShard, kWorkerA, msg::Pushed{}); }) ==
        "a pushed to a fenced worker");
  CHECK(seen([&] { story.sends(kShard, kWorkerA, msg::Weights{}); }) != "");
  story.sends(kShard, kWorkerA, msg::Refused{});
  story.sends(kShard, kWorkerB, msg::Pushed{});
  story.admitted(kA);
  story.sends(kShard, kWorkerA, msg::Pushed{});
}

TEST_CASE("a lease to an evicted session is caught, and one to the next is not") {
  auto story = story_of<EvictedChecker>();
  story.sends(kScheduler, kWorkerA, msg::Start{});
  story.emits(kScheduler, event::Evicted{.worker = kA});
  CHECK(seen([&] { story.sends(kScheduler, kWorkerA, msg::NoData{}); }) ==
        "a no data to session 1, which was evicted");
  CHECK(seen([&] { story.sends(kScheduler, kWorkerA, msg::Start{}); }) != "");
  story.sends(kScheduler, kWorkerA, msg::Start{}, Session(2));
  story.sends(kScheduler, kWorkerA, msg::NoData{}, Session(2));
}

TEST_CASE("all stages of a pipeline are evicted with it") {
  Plan plan = test::tiny_plan();
  plan.pipeline.stages = plan.workers = 2;
  auto story = story_of<EvictedChecker>(test::job_of(plan));
  for (const Address stage : {kWorkerA, kWorkerB}) story.sends(kScheduler, stage, msg::Start{});
  story.emits(kScheduler, event::Evicted{.worker = kA});
  for (const Address stage : {kWorkerA, kWorkerB})
    CHECK(seen([&] { story.sends(kScheduler, stage, msg::Start{}); }) != "");
}

TEST_CASE("messages and events of an ended actor are caught") {
  auto story = story_of<EvictedChecker>();
  story.ends(kWorkerA);
  CHECK(seen([&] { story.sends(kWorkerA, kScheduler, msg::Join{}); }) != "");
  CHECK(seen([&] { story.delivers(kScheduler, kWorkerA, msg::Stop{}); }) != "");
  CHECK(seen([&] { story.emits(kWorkerA, event::StepStarted{}); }) != "");
  story.sends(kScheduler, kWorkerA, msg::Stop{});  // the sender has not noticed the end
}

TEST_CASE("parked pulls of a worker beyond the limit are caught") {
  auto story = story_of<LimitsChecker>();
  for (std::uint32_t i = 0; i < limits::kMaxPullsPerWorker; ++i)
    for (const WorkerId worker : {kA, kB}) story.parked(worker, i);
  CHECK(seen([&] { story.parked(kA, 5); }) == "3 pulls parked; the limit is 2");
  story.answered(kB, 1);
  story.parked(kB, 5);
}

TEST_CASE("pushes that a shard accepts but never applies are caught") {
  const auto job = ssp_job();
  const auto buckets = static_cast<std::int64_t>(job->layout->buckets(ShardId(0)).size());
  auto story = story_of<LimitsChecker>();
  story.delivers(kScheduler, kShard, msg::Admit{kA, Session(1), Iteration(3)});
  story.admitted(kA, 3);
  story.delivers(kScheduler, kShard, msg::Raise{kA, Iteration(5)});
  for (const std::int64_t clock : {5, 6}) story.moved(kA, clock);
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) story.applied(kA, 5, bucket);
  story.moved(kA, 7);
  CHECK(seen([&] { story.moved(kA, 8); }) ==
        concat(2 * buckets, " buckets accepted but not applied; the limit is ", buckets));
}

TEST_CASE("a sent message beyond the size limits is caught") {
  Observers observers({std::make_shared<LimitsChecker>(ssp_job())});
  const std::size_t most = limits::kMaxHeaderBytes / sizeof(std::uint64_t);
  observers.sent({}, {kWorkerA, kShard, Message(std::vector<std::uint64_t>(most), {})});
  const Letter large(kWorkerA, kShard, Message(std::vector<std::uint64_t>(most + 1), {}));
  CHECK(seen([&] { observers.sent({}, large); }) != "");
}

TEST_CASE("a violation names the property, the actors, the observation and the preceding events") {
  auto story = story_of<RuleChecker>();
  story.admitted(kA);
  story.pulls(kB, 0, 0);
  story.moved(kA, 1);
  story.pulls(kA, 7, 1);
  try {
    story.answered(kA, 7);
    FAIL("no violation was thrown");
  } catch (const Violation& violation) {
    CHECK(std::string(violation.what()) ==
          "violated: no pull is answered against the rule (1)\n  by:   shard 0, worker 0\n  "
          "seen: iteration 7 answered at min_clock 1, the bound is 1\n  before:\n    0.001000000 "
          "s  shard 0: admitted, worker 0, iteration 0\n    0.002000000 s  worker 1 -> shard 0: "
          "pull, iteration 0\n    0.003000000 s  shard 0: clock moved, worker 0, clock 1\n    "
          "0.004000000 s  worker 0 -> shard 0: pull, iteration 7\n    0.005000000 s  shard 0: "
          "pull answered, worker 0, iteration 7, min clock 0, clock 0");
  }
}

}  // namespace leeway::sim
