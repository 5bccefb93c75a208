// The checkers of parameter servers accept valid runs of a pipeline and report violations.
#include <catch2/catch.hpp>
#include <functional>

#include "sim/checkers/limits.hpp"
#include "sim/checkers/parked.hpp"
#include "sim/checkers/rule.hpp"
#include "sim/checkers/snapshots.hpp"
#include "sim/checkers/weights.hpp"
#include "sim/observers.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::sim {
namespace {

const Address kStageShard = address_of(ShardId(0));
const WorkerId kFirst(0), kMiddle(1), kLast(2);

/// Three stages on one shard. The last stage uses the table of the first (tied weights).
std::shared_ptr<const Job> job_with(const std::string& schedule = "1f1b") {
  Plan plan = test::text_plan();
  plan.workers = plan.pipeline.stages = 3;
  plan.pipeline.schedule = schedule;
  plan.shards = 1;
  plan.consistency = plan::Ssp{2};
  plan.optimizer = {0.05, 0, plan::Sgd{}};
  return test::job_of(plan);
}

class StageStory {
 public:
  StageStory(std::shared_ptr<const Job> job, std::vector<std::shared_ptr<Observer>> observers)
      : job_(std::move(job)), observers_(std::move(observers)) {}

  void emits(const Event& event) { observers_.event({}, kStageShard, event); }
  void delivers(Address from, Address to, Body body) {
    observers_.delivered({}, {from, to, encode({.body = std::move(body)})});
  }
  void admitted_all() {
    for (const WorkerId worker : {kFirst, kMiddle, kLast}) emits(event::Admitted{.worker = worker});
  }
  void answered(WorkerId worker, std::int64_t iteration) {
    emits(event::PullAnswered{.worker = worker, .iteration = Iteration(iteration)});
  }
  void pulls(WorkerId worker, std::int64_t iteration) {
    delivers(address_of(worker), kStageShard, msg::Pull{Iteration(iteration), Clock(iteration)});
  }
  void moved(WorkerId worker, std::int64_t clock) {
    emits(event::ClockMoved{worker, Clock(clock)});
  }
  void pushes(WorkerId worker, std::int64_t iteration, std::uint32_t bucket,
              std::int64_t version = 0) {
    delivers(address_of(worker), kStageShard, push_of(worker, iteration, bucket, version));
  }
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t bucket) {
    emits(event::BucketApplied{.worker = worker,
                               .session = Session(1),
                               .iteration = Iteration(iteration),
                               .bucket = bucket,
                               .samples = 2});
  }
  /// The bucket of the tied weights.
  std::uint32_t tied_bucket(WorkerId worker) const {
    const auto& shard_buckets = job_->stages->share_of(worker).at[0].shard_buckets;
    for (std::uint32_t bucket = 0; bucket < shard_buckets.size(); ++bucket)
      if (job_->stages->owners(ShardId(0), shard_buckets[bucket]).size() == 2) return bucket;
    throw std::logic_error("no tied weights");
  }
  msg::Push push_of(WorkerId worker, std::int64_t iteration, std::uint32_t bucket,
                    std::int64_t version) const {
    const auto& buckets = job_->stages->share_of(worker).at[0].buckets;
    msg::Push push{.iteration = Iteration(iteration),
                   .bucket = bucket,
                   .bucket_count = static_cast<std::uint32_t>(buckets.size()),
                   .weight = 1,
                   .samples = 2};
    for (const BlockId id : buckets[bucket].blocks) {
      const std::int64_t floats = job_->layout->block(id).floats;
      Blob data = Blob::floats(floats);
      std::fill_n(data.mutable_floats(), floats, 0.0f);
      push.blocks.push_back({id, Version(version), DType::f32, Shape{floats}, data});
    }
    return push;
  }
  /// The final state with `updates` updates of the tied table, and no update of any other block.
  void ends(std::int64_t updates) {
    msg::SnapshotState state{.final = true};
    const auto& table = job_->stages->share_of(kLast).at[0].buckets[tied_bucket(kLast)].blocks;
    for (const BlockId id : job_->layout->blocks_of(ShardId(0))) {
      const Block& block = job_->layout->block(id);
      Blob data = Blob::floats(block.floats);
      std::fill_n(data.mutable_floats(), block.floats, 0.0f);
      for (const auto& slice : block.slices)
        job_->initial_values(slice.parameter, data.mutable_floats() + slice.offset);
      const bool is_table = std::find(table.begin(), table.end(), id) != table.end();
      state.blocks.push_back(
          {id, Version(is_table ? updates : 0), DType::f32, Shape{block.floats}, data});
    }
    delivers(kStageShard, kMonitor, std::move(state));
  }

 private:
  std::shared_ptr<const Job> job_;
  Observers observers_;
};

template <class C>
StageStory stage_story(const std::string& schedule = "1f1b") {
  const auto job = job_with(schedule);
  const auto clocks = std::make_shared<ClockChecker>(job);
  const auto bounds = std::make_shared<BoundChecker>(job, clocks);
  if constexpr (std::is_constructible_v<C, decltype(clocks), decltype(bounds)>) {
    return StageStory(job, {clocks, bounds, std::make_shared<C>(clocks, bounds)});
  } else {
    return StageStory(job, {std::make_shared<C>(job)});
  }
}

}  // namespace

TEST_CASE("a pull answered without the push of a stage that shares a block is caught") {
  for (const bool flushed : {true, false}) {
    auto story = stage_story<RuleChecker>(flushed ? "1f1b" : "weight_stashing");
    story.admitted_all();
    story.moved(kFirst, 1);
    story.moved(kMiddle, 1);
    for (const WorkerId worker : {kMiddle, kFirst}) story.pulls(worker, 1);
    story.answered(kMiddle, 1);  // shares no block
    CHECK(seen([&] { story.answered(kFirst, 1); }) ==
          (flushed ? "iteration 1 answered with 0 iterations of a stage that shares a block, not 1"
                   : ""));
  }
}

TEST_CASE("a pull may wait for a stage that shares a block with its worker") {
  auto story = stage_story<ParkedChecker>();
  story.admitted_all();
  story.moved(kFirst, 1);
  story.pulls(kFirst, 1);
  story.emits(event::PullParked{.worker = kFirst, .iteration = Iteration(1)});
  story.moved(kMiddle, 1);
  story.pulls(kMiddle, 1);
  story.answered(kMiddle, 1);
  story.pulls(kLast, 0);
  story.answered(kLast, 0);
  story.moved(kLast, 1);  // allows the pull of the first stage
  CHECK(seen([&] {
          story.pulls(kLast, 1);
        }).find("the pull of iteration 1 is allowed, but still parked") == 0);
}

TEST_CASE(
    "two tied gradients are one update, and applying one before the other arrives is caught") {
  const auto observed = [](std::int64_t updates, const std::function<void(StageStory&)>& actions) {
    auto story = stage_story<SnapshotChecker>();
    story.admitted_all();
    actions(story);
    return seen([&] { story.ends(updates); });
  };
  const auto both = [](StageStory& story) {
    story.pushes(kLast, 0, story.tied_bucket(kLast));
    story.pushes(kFirst, 0, story.tied_bucket(kFirst));
    story.applied(kFirst, 0, story.tied_bucket(kFirst));
    story.applied(kLast, 0, story.tied_bucket(kLast));
  };
  const auto final_state = [](int updates, int expected) {
    return concat("the final state at iteration 0: block 0 has ", updates, " updates, not ",
                  expected);
  };
  CHECK(observed(1, both) == "");
  CHECK(observed(2, both) == final_state(2, 1));
  const auto fenced_between = [](StageStory& story) {
    story.pushes(kLast, 0, story.tied_bucket(kLast));
    story.emits(event::Fenced{.worker = kLast});
    story.pushes(kFirst, 0, story.tied_bucket(kFirst));
    story.applied(kLast, 0, story.tied_bucket(kLast));
    story.applied(kFirst, 0, story.tied_bucket(kFirst));
  };
  CHECK(observed(2, fenced_between) == "");
  CHECK(observed(1, fenced_between) == final_state(1, 2));
  const auto refused_between = [](StageStory& story) {
    story.pushes(kLast, 0, story.tied_bucket(kLast));
    story.pushes(kFirst, 0, story.tied_bucket(kFirst));
    story.emits(event::Refused{.worker = kFirst});
    story.emits(event::Fenced{.worker = kFirst});
    story.applied(kLast, 0, story.tied_bucket(kLast));
  };
  CHECK(observed(1, refused_between) == "");
  auto story = stage_story<SnapshotChecker>();
  story.admitted_all();
  const std::uint32_t bucket = story.tied_bucket(kLast);
  story.pushes(kLast, 0, bucket);
  CHECK(seen([&] { story.applied(kLast, 0, bucket); }) ==
        concat("bucket ", bucket, " of iteration 0 was applied before its tied gradient arrived"));
}

TEST_CASE("in a pipeline that is never flushed, each tied gradient is an update") {
  auto story = stage_story<SnapshotChecker>("weight_stashing");
  story.admitted_all();
  for (const WorkerId worker : {kLast, kFirst}) {
    story.pushes(worker, 0, story.tied_bucket(worker));
    story.applied(worker, 0, story.tied_bucket(worker));
  }
  CHECK(seen([&] { story.ends(2); }) == "");
  CHECK(seen([&] { story.ends(1); }) ==
        "the final state at iteration 0: block 0 has 1 updates, not 2");
}

TEST_CASE("a gradient may use weights pulled for a later iteration, but no others") {
  const auto observed = [](const std::string& schedule, std::int64_t pulled, std::int64_t pushed,
                           std::int64_t version) {
    auto story = stage_story<WeightsChecker>(schedule);
    for (const std::int64_t iteration : {pulled - 2, pulled})
      story.delivers(
          kStageShard, address_of(kFirst),
          msg::Weights{Iteration(iteration), story.push_of(kFirst, 0, 0, iteration).blocks});
    return seen([&] { story.pushes(kFirst, pushed, 0, version); });
  };
  const BlockId first = job_with()->stages->share_of(kFirst).at[0].buckets[0].blocks[0];
  CHECK(observed("1f1b", 3, 3, 3) == "");
  CHECK(observed("1f1b", 3, 2, 3) == "a gradient of iteration 2, whose weights never arrived");
  CHECK(observed("weight_stashing", 3, 2, 3) == "");
  CHECK(observed("weight_stashing", 3, 1, 3) == "");
  CHECK(observed("weight_stashing", 3, 2, 1) ==  // pulled for iterations up to 1
        concat("the gradient of block ", first,
               " in iteration 2 is of version 1, which was not pulled for it"));
  CHECK(observed("weight_stashing", 3, 4, 3) ==
        "a gradient of iteration 4, whose weights never arrived");
}

TEST_CASE("accepted pushes of a stage are counted by its own buckets") {
  for (const std::string schedule : {"1f1b", "weight_stashing"}) {
    const auto job = job_with(schedule);
    const auto buckets = static_cast<std::int64_t>(job->stages->share(1).at[0].buckets.size());
    REQUIRE(buckets < static_cast<std::int64_t>(job->layout->buckets(ShardId(0)).size()));
    auto story = stage_story<LimitsChecker>(schedule);
    story.delivers(kScheduler, kStageShard, msg::Admit{kMiddle, Session(1), Iteration(0)});
    story.admitted_all();
    const std::int64_t most = 1 + job->stages->version_lag();
    story.moved(kMiddle, most);
    CHECK(seen([&] { story.moved(kMiddle, most + 1); }) ==
          concat((most + 1) * buckets, " buckets accepted but not applied; the limit is ",
                 most * buckets));
  }
}

}  // namespace leeway::sim
