// Scripted interleavings of two pipelines: workers 0 and 1 are the stages of the first, workers 2
// and 3 those of the second.
#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "sim/story.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim::story {
namespace {

constexpr int kPipelineSamples = 600;  // of the only epoch
constexpr std::uint32_t kBound = 2;

/// Two pipelines of two equal stages in a world without randomness; three micro-batches of two
/// samples.
Plan pipeline_plan_of(const std::string& schedule = "1f1b") {
  Plan plan = test::tiny_plan();
  plan.data = plan::Synthetic{kPipelineSamples, 20, plan::Clusters{3, 4, 3}};
  plan.stop = {.epochs = 1};
  plan.consistency = plan::Ssp{kBound};
  plan.workers = 4;
  plan.pipeline.stages = 2;
  plan.pipeline.schedule = schedule;
  plan.shards = 1;
  plan.batch = 6;
  plan.micro_batches = 3;
  plan.simulated = plan::World{.noise = 0, .jitter = 0};
  return plan;
}

}  // namespace

TEST_CASE(
    "a crashed stage stops its pipeline until it restarts, and the other pipeline continues") {
  for (const char* schedule : {"1f1b", "weight_stashing"}) {
    INFO(schedule);
    Story story(test::job_of(pipeline_plan_of(schedule)));
    story.until(begun(worker(3), 3)).crash(worker(3)).until(removed(worker(3)));
    const auto before = story.count(begun(worker(2)));
    for (int i = 0; i < 10; ++i) story.until(finished(worker(0)));
    CHECK(story.count(begun(worker(2))) == before);
    story.start_again(worker(3)).until(begun(worker(2))).until(finished(worker(3))).to_the_end();
    CHECK(story.count(evicted(worker(2))) == 1);
    CHECK(story.count(evicted(worker(0))) == 0);
    // The checkers verify that each micro-batch passes each chunk once.
    CHECK(story.totals().end.samples_trained == kPipelineSamples);
  }
}

TEST_CASE("an iteration pushed by one stage is completed, not repeated, after another stage dies") {
  Story story(test::job_of(pipeline_plan_of()));
  story.hold(sent<msg::Push>(worker(2), shard(0), 2)).until(finished(worker(2), 2));
  CHECK(story.happened(applied(worker(3), 2)));
  CHECK_FALSE(story.happened(applied(worker(2), 2)));
  story.crash(worker(2)).until(partial(worker(2))).to_the_end();
  CHECK(story.totals().end.partial_pushes == 1);
  CHECK(story.totals().end.samples_trained == kPipelineSamples);
}

TEST_CASE("stages that lose their link restart, and lost activations are computed again") {
  Story story(test::job_of(pipeline_plan_of()));
  const auto activation = sent<msg::Activation>(worker(2), worker(3), 4);
  story.hold(activation).until(activation).reconnect(worker(2), worker(3));
  story.release(worker(2), worker(3)).until(evicted(worker(2))).until(begun(worker(3)));
  story.to_the_end();
  CHECK(story.count(sent<msg::Start>(kScheduler, worker(3))) == 2);
  CHECK(story.totals().end.samples_trained == kPipelineSamples);
}

TEST_CASE("a link that breaks before a Start arrives, or after its end, is not forgotten") {
  Plan plan = pipeline_plan_of();
  plan.data = plan::Synthetic{6, 20, plan::Clusters{3, 4, 3}};  // for one of the two pipelines
  Story story(test::job_of(plan));
  story.hold(kScheduler, worker(2)).hold(kScheduler, worker(3)).until(leased(worker(0)));
  // Worker 2 gets its Start and sends NoMore, because it has no samples. NoMore is lost before
  // worker 3 gets its Start.
  const auto no_more = sent<msg::NoMore>(worker(2), worker(3));
  story.hold(no_more).release(kScheduler, worker(2)).until(no_more).pass(milliseconds(1));
  story.reconnect(worker(2), worker(3)).release(kScheduler, worker(3)).to_the_end();
  CHECK(story.totals().end.samples_trained == 6);
}

TEST_CASE("a first stage without weights runs no further ahead than the schedule allows") {
  for (const char* schedule : {"1f1b", "gpipe", "2bw"}) {
    INFO(schedule);
    Plan plan = pipeline_plan_of(schedule);
    plan.model.insert(plan.model.begin(), plan::Relu{});
    plan.pipeline.split = concat("0,1-", plan.model.size() - 1);
    Story story(test::job_of(plan));
    story.until(finished(worker(0), 3)).hold(shard(0), worker(1)).pass(seconds(1000));
    const auto begun_by_first = story.count(begun(worker(0)));
    CHECK(begun_by_first >= 4);
    CHECK(begun_by_first <= 7);
    story.release(shard(0), worker(1)).to_the_end();
    CHECK(story.totals().end.samples_trained == kPipelineSamples);
  }
}

}  // namespace leeway::sim::story
