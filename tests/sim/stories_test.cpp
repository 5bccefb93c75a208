// Scripted interleavings that a search rarely draws.
#include "sim/story.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny.hpp"

namespace leeway::sim::story {
namespace {

constexpr int kSamples = 600;  // of the only epoch

/// Workers of equal speed in a world without randomness; two samples per iteration.
Plan plan_of(plan::Consistency consistency, std::uint32_t workers) {
  Plan plan = test::tiny_plan();
  plan.data = plan::Synthetic{kSamples, 20, plan::Clusters{3, 4, 3}};
  plan.stop = {.epochs = 1};
  plan.consistency = consistency;
  plan.workers = workers;
  plan.simulated = plan::World{.noise = 0, .jitter = 0};
  return plan;
}

std::shared_ptr<const Job> job_of(plan::Consistency consistency, std::uint32_t workers) {
  return test::job_of(plan_of(consistency, workers));
}

}  // namespace

TEST_CASE("a pull that waits for a dead worker is answered after its removal") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.until(begun(worker(1), 2)).crash(worker(1)).until(evicted(worker(1)));
  CHECK(story.happened(parked(worker(0), 4)));
  CHECK(story.waits(worker(0), shard(0)));
  story.to_the_end();
  CHECK(story.happened(answered(worker(0), 4)));
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a push that arrives after its worker was evicted is refused") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.hold(sent<msg::Push>(worker(1), shard(0), 2)).until(applied(worker(1), 2).at(shard(1)));
  story.crash(worker(1)).until(fenced(worker(1)).at(shard(0)));
  story.release(worker(1), shard(0)).until(refused(worker(1), 2).at(shard(0)));
  CHECK_FALSE(story.happened(removed(worker(1)).at(shard(0))));
  story.to_the_end();
  CHECK_FALSE(story.happened(applied(worker(1), 2).at(shard(0))));
  CHECK(story.totals().end.partial_pushes == 1);
}

TEST_CASE("a push is repeated after its acknowledgement is lost, but not applied again") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.hold(sent<msg::Pushed>(shard(0), worker(1), 2)).until(applied(worker(1), 2).at(shard(0)));
  const auto before = story.count(applied(worker(1), 2).at(shard(0)));
  REQUIRE(before == 1);
  story.reconnect(shard(0), worker(1)).release(shard(0), worker(1));
  story.until(repeated(worker(1), 2).at(shard(0))).to_the_end();
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a push of an earlier session is refused") {
  Plan plan = plan_of(plan::Ssp{4}, 2);
  plan.shards = 1;
  Story story(test::job_of(plan));
  story.hold(sent<msg::Push>(worker(1), shard(0), 2)).until(finished(worker(1), 2));
  story.crash(worker(1)).start_again(worker(1)).until(admitted(worker(1)));
  story.release(worker(1), shard(0)).until(refused(worker(1), 2)).to_the_end();
  CHECK_FALSE(story.happened(applied(worker(1), 2)));
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a push that is repeated before it is applied is not acknowledged early") {
  Story story(job_of(plan::Bsp{}, 2));
  story.hold(sent<msg::Push>(worker(0), shard(0), 2)).until(finished(worker(1), 2));
  story.pass(milliseconds(1)).reconnect(worker(1), shard(0));
  story.until(repeated(worker(1), 2).at(shard(0))).pass(milliseconds(1));
  CHECK(story.count(sent<msg::Pushed>(shard(0), worker(1), 2)) == 0);
  story.release(worker(0), shard(0)).until(applied(worker(1), 2).at(shard(0))).to_the_end();
  CHECK(story.happened(sent<msg::Pushed>(shard(0), worker(1), 2)));
}

TEST_CASE("a snapshot waits for a delayed push below it") {
  Plan plan = plan_of(plan::Ssp{30}, 2);
  plan.evaluate_every = 0.3;
  Story story(test::job_of(plan));
  story.until(delivered<msg::Snapshot>(kScheduler, shard(0))).hold(worker(1), shard(0));
  story.until(parked(worker(0)).at(shard(0)));  // far beyond the snapshot
  const auto taken = emitted<event::SnapshotTaken>().at(shard(0));
  CHECK_FALSE(story.happened(taken));
  story.release(worker(1), shard(0)).until(taken);
  story.until(delivered<msg::SnapshotState>(shard(0), kMonitor)).to_the_end();
}

TEST_CASE("a push with one bucket applied before its worker died is partial") {
  Plan plan = plan_of(plan::Ssp{1}, 2);
  plan.shards = 1;
  Story story(test::job_of(plan));
  story.hold(sent<msg::Push>(worker(1), shard(0), 2)).until(finished(worker(1), 2));
  story.deliver_one(worker(1), shard(0)).crash(worker(1)).until(partial(worker(1)));
  CHECK(story.count(applied(worker(1), 2)) == 1);
  story.to_the_end();
  CHECK(story.totals().end.partial_pushes == 1);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("one shard admits a worker before another shard fences a dead one") {
  Story story(job_of(plan::Ssp{1}, 3));
  story.until(begun(worker(2), 2)).crash(worker(2)).until(removed(worker(2)).at(shard(1)));
  story.crash(worker(1)).hold(sent<msg::Fence>(kScheduler, shard(1)));
  story.until(fenced(worker(1)).at(shard(0))).start_again(worker(2));
  story.until(admitted(worker(2)).at(shard(0)));
  CHECK_FALSE(story.happened(fenced(worker(1)).at(shard(1))));
  story.release(kScheduler, shard(1)).until(begun(worker(2))).to_the_end();
  CHECK(story.happened(fenced(worker(1)).at(shard(1))));
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("idle workers train the lease of the last worker, which died") {
  Story story(job_of(plan::Asp{}, 2));
  story.until(leased(worker(1))).freeze(worker(1));
  story.until(delivered<msg::Idle>(worker(0), kScheduler)).crash(worker(1));
  const auto before = story.count(begun(worker(0)));
  story.until(given_back(worker(1))).until(admitted(worker(0))).to_the_end();
  CHECK(story.count(begun(worker(0))) > before);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("under bsp, workers without samples in the last round complete it") {
  Plan plan = plan_of(plan::Bsp{}, 3);
  plan.stop = {.iterations = 7};
  Story story(test::job_of(plan));
  story.to_the_end();
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(story.count(finished(worker(i))) == 3);
  CHECK(story.totals().workers[0].iterations == 3);
  CHECK(story.totals().workers[2].iterations == 2);
  CHECK(story.totals().end.samples_trained == 7 * 2);
}

TEST_CASE("under ssp, workers that have done their last iteration delay no other worker") {
  Plan plan = plan_of(plan::Ssp{0}, 3);
  plan.stop = {.iterations = 13};  // one worker has one more than the others
  Story story(test::job_of(plan));
  story.to_the_end();
  std::vector<std::size_t> done;
  for (std::uint32_t i = 0; i < 3; ++i) done.push_back(story.count(finished(worker(i))));
  CHECK(*std::max_element(done.begin(), done.end()) ==
        *std::min_element(done.begin(), done.end()) + 1);
  CHECK(story.totals().end.samples_trained == 13 * 2);
}

TEST_CASE("a pull waits until the admission of its worker is settled") {
  Story story(job_of(plan::Ssp{4}, 3));
  story.until(begun(worker(2), 2)).crash(worker(2)).until(removed(worker(2)).at(shard(1)));
  story.hold(sent<msg::Admit>(kScheduler, shard(1))).start_again(worker(2));
  story.until(admitted(worker(2)).at(shard(0)));
  story.until(finished(worker(0))).until(finished(worker(0)));  // shard 0 gets no Raise yet
  story.hold(sent<msg::Raise>(kScheduler, shard(0))).release(kScheduler, shard(1));
  story.until(parked(worker(2)).at(shard(0)));
  CHECK(story.happened(answered(worker(2)).at(shard(1))));
  story.release(kScheduler, shard(0)).until(begun(worker(2))).to_the_end();
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a lease lost with its connection is requested again and is the same") {
  Story story(job_of(plan::Ssp{1}, 2));
  const auto lease = sent<msg::Lease>(kScheduler, worker(1), 0);
  story.hold(lease).until(lease).reconnect(kScheduler, worker(1)).release(kScheduler, worker(1));
  story.until(lease).to_the_end();
  CHECK(story.count(delivered<msg::Lease>(kScheduler, worker(1), 0)) == 1);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a Start lost with its connection is sent again") {
  Story story(job_of(plan::Ssp{1}, 2));
  const auto start = sent<msg::Start>(kScheduler, worker(1));
  story.hold(start).until(start).reconnect(kScheduler, worker(1)).release(kScheduler, worker(1));
  story.until(begun(worker(1), 0)).to_the_end();
  CHECK(story.count(start) == 2);
  CHECK(story.count(delivered<msg::Start>(kScheduler, worker(1))) == 1);
}

TEST_CASE("a Stop lost with its connection is sent again") {
  Story story(job_of(plan::Ssp{1}, 2));
  const auto stop = sent<msg::Stop>(kScheduler, worker(1));
  story.hold(stop).until(stop).reconnect(kScheduler, worker(1)).release(kScheduler, worker(1));
  story.to_the_end();
  CHECK(story.count(stop) == 2);
  CHECK(story.count(delivered<msg::Stop>(kScheduler, worker(1))) == 1);
}

TEST_CASE("a frozen worker is evicted, thaws and trains again") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.until(begun(worker(1), 2)).freeze(worker(1)).until(removed(worker(1)).at(shard(1)));
  const auto before = story.count(begun(worker(1)));
  story.thaw(worker(1)).until(admitted(worker(1))).until(begun(worker(1))).to_the_end();
  CHECK(story.count(begun(worker(1))) > before + 10);
  CHECK(story.count(evicted(worker(1))) == 1);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a worker that restarts waits until its old session is fenced") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.until(begun(worker(1), 2)).crash(worker(1));
  const auto answer = sent<msg::Fenced>(shard(1), kScheduler);
  story.hold(answer).until(answer).start_again(worker(1));
  story.until(delivered<msg::Join>(worker(1), kScheduler)).pass(milliseconds(50));
  CHECK(story.count(admitted(worker(1)).at(shard(0))) == 1);
  story.release(shard(1), kScheduler).until(admitted(worker(1))).until(begun(worker(1)));
  story.to_the_end();
  CHECK(story.count(evicted(worker(1))) == 1);
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a worker whose end is noticed before its Join arrives trains after its next restart") {
  Story story(job_of(plan::Ssp{1}, 2));
  story.until(begun(worker(1), 2)).hold(worker(1), kScheduler);
  story.hold(worker(0), shard(0));  // the run outlasts the restart
  story.until(sent<msg::Join>(worker(1), kScheduler)).until(removed(worker(1)));
  story.crash(worker(1)).pass(milliseconds(300)).start_again(worker(1));
  story.release(worker(1), kScheduler).pass(milliseconds(800)).release(worker(0), shard(0));
  story.until(begun(worker(1))).to_the_end();
  CHECK(story.totals().end.samples_trained == kSamples);
}

TEST_CASE("a story that cannot continue names its goal") {
  Story story(job_of(plan::Ssp{1}, 2));
  CHECK_THROWS_WITH(
      story.until(parked(worker(0), 5000).at(shard(1))),
      "the run ended without event 'pull parked' of worker 0 at shard 1, iteration 5000");
  Story still(job_of(plan::Ssp{1}, 2));
  CHECK_THROWS_WITH(still.until(begun(worker(0), 2)).freeze(kScheduler).to_the_end(),
                    Catch::Contains("waited for the end: all actors wait for each other"));
}

}  // namespace leeway::sim::story
