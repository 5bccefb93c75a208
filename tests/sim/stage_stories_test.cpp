// Interleavings of pipelines that have to be thought of: workers 0 and 1 are the stages of the
// first one, 2 and 3 those of the second.
#include <catch2/catch.hpp>

#include "sim/story.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim::story {
namespace {

constexpr int kSamples = 600;  // of an epoch, of which there is one
constexpr std::uint32_t kBound = 2;

/// Two pipelines of two equal stages, in a world without chance; three micro-batches of two
/// samples.
Plan plan_of(const std::string& schedule = "1f1b") {
  Plan plan = test::tiny_plan();
  plan.data = plan::Synthetic{kSamples, 20, plan::Clusters{3, 4, 3}};
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

TEST_CASE("a stage that crashes takes its pipeline along, and brings it back; the other goes on") {
  for (const char* schedule : {"1f1b", "weight_stashing"}) {
    INFO(schedule);
    Story story(test::job_of(plan_of(schedule)));
    story.until(begun(worker(3), 3)).crash(worker(3)).until(removed(worker(3)));
    const auto before = story.count(begun(worker(2)));
    for (int i = 0; i < 10; ++i) story.until(finished(worker(0)));
    CHECK(story.count(begun(worker(2))) == before);
    story.start_again(worker(3)).until(begun(worker(2))).until(finished(worker(3))).to_the_end();
    CHECK(story.count(evicted(worker(2))) == 1);
    CHECK(story.count(evicted(worker(0))) == 0);
    // The checkers have seen that each micro-batch went through each part once.
    CHECK(story.totals().end.samples_trained == kSamples);
  }
}

TEST_CASE("what one stage has pushed when another dies is completed, and not repeated") {
  Story story(test::job_of(plan_of()));
  story.hold(sent<msg::Push>(worker(2), shard(0), 2)).until(finished(worker(2), 2));
  CHECK(story.happened(applied(worker(3), 2)));
  CHECK_FALSE(story.happened(applied(worker(2), 2)));
  story.crash(worker(2)).until(torn(worker(2))).to_the_end();
  CHECK(story.totals().end.torn_pushes == 1);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("stages that lose their link start again, and what was on its way is computed again") {
  Story story(test::job_of(plan_of()));
  const auto activation = sent<msg::Activation>(worker(2), worker(3), 4);
  story.hold(activation).until(activation).reconnect(worker(2), worker(3));
  story.release(worker(2), worker(3)).until(evicted(worker(2))).until(begun(worker(3)));
  story.to_the_end();
  CHECK(story.count(sent<msg::Start>(kScheduler, worker(3))) == 2);
  CHECK(story.totals().end.samples_trained == kSamples);
}

}  // namespace leeway::sim::story
