// What checkers make of stages of a pipeline, fed by hand: they keep quiet while all is well, and
// name what is not.
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

const Address kShard = address_of(ShardId(0));
const WorkerId kFirst(0), kMiddle(1), kLast(2);

/// Three stages on one shard; the last borrows the table of the first.
std::shared_ptr<const Job> job_with(const std::string& schedule = "1f1b") {
  Plan plan = test::text_plan();
  plan.workers = plan.pipeline.stages = 3;
  plan.pipeline.schedule = schedule;
  plan.shards = 1;
  plan.consistency = plan::Ssp{2};
  plan.optimizer = {0.05, 0, plan::Sgd{}};
  return test::job_of(plan);
}

class Story {
 public:
  Story(std::shared_ptr<const Job> job, std::vector<std::shared_ptr<Observer>> observers)
      : job_(std::move(job)), observers_(std::move(observers)) {}

  void happens(const Event& event) { observers_.event({}, kShard, event); }
  void gets(Address from, Address to, Body body) {
    observers_.delivered({}, {from, to, encode({.body = std::move(body)})});
  }
  void admitted_all() {
    for (const WorkerId worker : {kFirst, kMiddle, kLast})
      happens(event::Admitted{.worker = worker});
  }
  void answered(WorkerId worker, std::int64_t iteration) {
    happens(event::PullAnswered{.worker = worker, .iteration = Iteration(iteration)});
  }
  void asks(WorkerId worker, std::int64_t iteration) {
    gets(address_of(worker), kShard, msg::Pull{Iteration(iteration), Clock(iteration)});
  }
  void moved(WorkerId worker, std::int64_t clock) {
    happens(event::ClockMoved{worker, Clock(clock)});
  }
  void pushes(WorkerId worker, std::int64_t iteration, std::uint32_t part,
              std::int64_t version = 0) {
    gets(address_of(worker), kShard, push_of(worker, iteration, part, version));
  }
  void applied(WorkerId worker, std::int64_t iteration, std::uint32_t part) {
    happens(event::BucketApplied{.worker = worker,
                                 .incarnation = Incarnation(1),
                                 .iteration = Iteration(iteration),
                                 .bucket = part,
                                 .samples = 2});
  }
  /// The part that first and last share.
  std::uint32_t shared(WorkerId worker) const {
    const auto& groups = job_->stages->share_of(worker).at[0].shard_buckets;
    for (std::uint32_t part = 0; part < groups.size(); ++part)
      if (job_->stages->owners(ShardId(0), groups[part]).size() == 2) return part;
    throw std::logic_error("nothing is shared");
  }
  msg::Push push_of(WorkerId worker, std::int64_t iteration, std::uint32_t part,
                    std::int64_t version) const {
    const auto& parts = job_->stages->share_of(worker).at[0].buckets;
    msg::Push push{.iteration = Iteration(iteration),
                   .bucket = part,
                   .bucket_count = static_cast<std::uint32_t>(parts.size()),
                   .weight = 1,
                   .samples = 2};
    for (const BlockId id : parts[part].blocks) {
      const std::int64_t floats = job_->layout->block(id).floats;
      Blob data = Blob::floats(floats);
      std::fill_n(data.mutable_floats(), floats, 0.0f);
      push.blocks.push_back({id, Version(version), DType::f32, Shape{floats}, data});
    }
    return push;
  }
  /// The end, with so many updates of the table that is shared and none of any other block.
  void ends(std::int64_t updates) {
    msg::SnapshotState state{.final = true};
    const auto& table = job_->stages->share_of(kLast).at[0].buckets[shared(kLast)].blocks;
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
    gets(kShard, kMonitor, std::move(state));
  }

 private:
  std::shared_ptr<const Job> job_;
  Observers observers_;
};

template <class C>
Story story_of(const std::string& schedule = "1f1b") {
  const auto job = job_with(schedule);
  const auto clocks = std::make_shared<ClockChecker>(job);
  const auto bounds = std::make_shared<BoundChecker>(job, clocks);
  if constexpr (std::is_constructible_v<C, decltype(clocks), decltype(bounds)>) {
    return Story(job, {clocks, bounds, std::make_shared<C>(clocks, bounds)});
  } else {
    return Story(job, {std::make_shared<C>(job)});
  }
}

}  // namespace

TEST_CASE(
    "a pull that is answered without the push of who shares a block with its worker is caught") {
  for (const bool emptied : {true, false}) {
    auto story = story_of<RuleChecker>(emptied ? "1f1b" : "weight_stashing");
    story.admitted_all();
    story.moved(kFirst, 1);
    story.moved(kMiddle, 1);
    for (const WorkerId worker : {kMiddle, kFirst}) story.asks(worker, 1);
    story.answered(kMiddle, 1);  // shares nothing
    CHECK(seen([&] { story.answered(kFirst, 1); }) ==
          (emptied ? "iteration 1 answered with 0 iterations of a stage that shares a block, not 1"
                   : ""));
  }
}

TEST_CASE("a pull that waits for who shares a block with its worker is none that is left waiting") {
  auto story = story_of<ParkedChecker>();
  story.admitted_all();
  story.moved(kFirst, 1);
  story.asks(kFirst, 1);
  story.happens(event::PullParked{.worker = kFirst, .iteration = Iteration(1)});
  story.moved(kMiddle, 1);
  story.asks(kMiddle, 1);
  story.answered(kMiddle, 1);
  story.asks(kLast, 0);
  story.answered(kLast, 0);
  story.moved(kLast, 1);  // lets the first one's go
  CHECK(seen([&] {
          story.asks(kLast, 1);
        }).find("the pull of iteration 1 is allowed, but still parked") == 0);
}

TEST_CASE("two halves are one update, and one that is applied before the other comes is caught") {
  const auto told = [](std::int64_t updates, const std::function<void(Story&)>& deeds) {
    auto story = story_of<SnapshotChecker>();
    story.admitted_all();
    deeds(story);
    return seen([&] { story.ends(updates); });
  };
  const auto both = [](Story& story) {
    story.pushes(kLast, 0, story.shared(kLast));
    story.pushes(kFirst, 0, story.shared(kFirst));
    story.applied(kFirst, 0, story.shared(kFirst));
    story.applied(kLast, 0, story.shared(kLast));
  };
  const auto final_state = [](int updates, int expected) {
    return concat("the final state at iteration 0: block 0 has ", updates, " updates, not ",
                  expected);
  };
  CHECK(told(1, both) == "");
  CHECK(told(2, both) == final_state(2, 1));
  const auto fenced_between = [](Story& story) {
    story.pushes(kLast, 0, story.shared(kLast));
    story.happens(event::Fenced{.worker = kLast});
    story.pushes(kFirst, 0, story.shared(kFirst));
    story.applied(kLast, 0, story.shared(kLast));
    story.applied(kFirst, 0, story.shared(kFirst));
  };
  CHECK(told(2, fenced_between) == "");
  CHECK(told(1, fenced_between) == final_state(1, 2));
  const auto refused_between = [](Story& story) {
    story.pushes(kLast, 0, story.shared(kLast));
    story.pushes(kFirst, 0, story.shared(kFirst));
    story.happens(event::Refused{.worker = kFirst});
    story.happens(event::Fenced{.worker = kFirst});
    story.applied(kLast, 0, story.shared(kLast));
  };
  CHECK(told(1, refused_between) == "");
  auto story = story_of<SnapshotChecker>();
  story.admitted_all();
  const std::uint32_t part = story.shared(kLast);
  story.pushes(kLast, 0, part);
  CHECK(seen([&] { story.applied(kLast, 0, part); }) ==
        concat("bucket ", part, " of iteration 0 was applied before its tied gradient arrived"));
}

TEST_CASE("where the pipeline is never emptied, each half is an update") {
  auto story = story_of<SnapshotChecker>("weight_stashing");
  story.admitted_all();
  for (const WorkerId worker : {kLast, kFirst}) {
    story.pushes(worker, 0, story.shared(worker));
    story.applied(worker, 0, story.shared(worker));
  }
  CHECK(seen([&] { story.ends(2); }) == "");
  CHECK(seen([&] { story.ends(1); }) ==
        "the final state at iteration 0: block 0 has 1 updates, not 2");
}

TEST_CASE("a gradient may be of weights that were pulled for a later iteration, not of others") {
  const auto told = [](const std::string& schedule, std::int64_t pulled, std::int64_t pushed,
                       std::int64_t version) {
    auto story = story_of<WeightsChecker>(schedule);
    for (const std::int64_t iteration : {pulled - 2, pulled})
      story.gets(kShard, address_of(kFirst),
                 msg::Weights{Iteration(iteration), story.push_of(kFirst, 0, 0, iteration).blocks});
    return seen([&] { story.pushes(kFirst, pushed, 0, version); });
  };
  const BlockId first = job_with()->stages->share_of(kFirst).at[0].buckets[0].blocks[0];
  CHECK(told("1f1b", 3, 3, 3) == "");
  CHECK(told("1f1b", 3, 2, 3) == "a gradient of iteration 2, whose weights never came");
  CHECK(told("weight_stashing", 3, 2, 3) == "");
  CHECK(told("weight_stashing", 3, 1, 3) == "");
  CHECK(told("weight_stashing", 3, 2, 1) ==  // pulled for iteration 1 and those before
        concat("the gradient of block ", first,
               " in iteration 2 is of version 1, which is not the one that was pulled"));
  CHECK(told("weight_stashing", 3, 4, 3) == "a gradient of iteration 4, whose weights never came");
}

TEST_CASE("pushes of a stage that are taken and not applied are counted by its own parts") {
  for (const std::string schedule : {"1f1b", "weight_stashing"}) {
    const auto job = job_with(schedule);
    const auto parts = static_cast<std::int64_t>(job->stages->share(1).at[0].buckets.size());
    REQUIRE(parts < static_cast<std::int64_t>(job->layout->buckets(ShardId(0)).size()));
    auto story = story_of<LimitsChecker>(schedule);
    story.gets(kScheduler, kShard, msg::Admit{kMiddle, Incarnation(1), Iteration(0)});
    story.admitted_all();
    const std::int64_t most = 1 + job->stages->version_lag();
    story.moved(kMiddle, most);
    CHECK(seen([&] { story.moved(kMiddle, most + 1); }) ==
          concat((most + 1) * parts, " buckets accepted but not applied; allowed are ",
                 most * parts));
  }
}

}  // namespace leeway::sim
