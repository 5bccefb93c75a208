// The three apply policies, each with a clock table and a sink that records.
#include <catch2/catch.hpp>

#include "actors/shard/apply_first_pushes.hpp"
#include "actors/shard/apply_full_rounds.hpp"
#include "actors/shard/apply_on_arrival.hpp"
#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

using PushNames = std::vector<std::vector<PushName>>;
using Names = std::vector<PushName>;

/// Three workers that push one or more buckets to a shard with one policy.
struct Scene {
  explicit Scene(std::uint32_t bucket_count = 1) : buckets(bucket_count) {
    admit_workers(clocks, 3);
  }
  std::optional<WorkerId> take(ApplyPolicy& policy, const Contribution& push) {
    REQUIRE(clocks.accept(push.worker, push.iteration, push.bucket, buckets) ==
            ClockTable::Verdict::accepted);
    return policy.take(push, out);
  }
  std::vector<std::int64_t> clock_values() const {
    std::vector<std::int64_t> values;
    for (const auto& [worker, participant] : clocks.participants())
      values.push_back(participant.clock.value());
    return values;
  }

  std::uint32_t buckets;
  ClockTable clocks;
  RecordingSink sink;
  RecordingOutbox out;
};

struct OnArrival : Scene {
  explicit OnArrival(std::uint32_t bucket_count = 1)
      : Scene(bucket_count),
        job(one_shard_job()),
        tied(*job->stages, ShardId(0), bucket_count, clocks),
        policy(clocks, tied, sink) {}
  std::shared_ptr<const Job> job;
  TiedBlocks tied;
  ApplyOnArrival policy;
};

struct FullRounds : Scene {
  explicit FullRounds(std::uint32_t bucket_count = 1) : Scene(bucket_count), policy(clocks, sink) {}
  ApplyFullRounds policy;
};

/// One spare worker, and no grace window unless one is given; the shard leads.
struct FirstPushes : Scene {
  explicit FirstPushes(std::uint32_t bucket_count = 1, GraceWindow grace = GraceWindow::fixed({}))
      : Scene(bucket_count),
        policy(RoundSize::all_but(1), std::move(grace), true, 1, clocks, sink, scheduler) {}
  std::vector<msg::RoundClosed> proposals() const { return out.sent<msg::RoundClosed>(kScheduler); }
  bool close(std::int64_t round, std::vector<WorkerId> contributors) {
    return policy.close({Iteration(round), std::move(contributors), View(1), scale});
  }
  double scale = 1;
  Channel scheduler{kScheduler};
  ApplyFirstPushes policy;
};

}  // namespace

TEST_CASE("on arrival, each push is one update, and the last bucket moves the clock") {
  OnArrival scene(2);
  CHECK(scene.take(scene.policy, push_of(kA, 0, 0)) == std::nullopt);
  CHECK(scene.take(scene.policy, push_of(kA, 0, 1)) == kA);
  CHECK(scene.sink.updates == PushNames{{{0, 0}}, {{0, 0}}});
  CHECK(scene.clock_values() == std::vector<std::int64_t>{1, 0, 0});
  const auto moved = scene.out.events<event::ClockMoved>();
  REQUIRE(moved.size() == 1);
  CHECK(moved[0].worker == kA);
  CHECK(moved[0].clock == Clock(1));
}

TEST_CASE("on arrival, a fence reports the applied buckets of the unfinished iteration") {
  OnArrival scene(3);
  scene.take(scene.policy, push_of(kA, 0, 2));
  scene.clocks.fence(kA);
  const auto progress = scene.policy.fence(kA);
  CHECK(progress.clock == Clock(0));
  CHECK(progress.applied == std::vector<std::uint32_t>{2});
  CHECK(scene.sink.forgotten.empty());
}

TEST_CASE("a full round is one update per bucket, in worker order") {
  FullRounds scene(2);
  for (const WorkerId worker : {kC, kA}) {
    scene.take(scene.policy, push_of(worker, 0, 1));
    CHECK(scene.take(scene.policy, push_of(worker, 0, 0)) == worker);
    scene.policy.apply_complete(scene.out);
  }
  CHECK(scene.sink.updates.empty());
  for (const std::uint32_t bucket : {0u, 1u}) scene.take(scene.policy, push_of(kB, 0, bucket));
  scene.policy.apply_complete(scene.out);
  const Names round = {{0, 0}, {1, 0}, {2, 0}};
  CHECK(scene.sink.updates == PushNames{round, round});
}

TEST_CASE("in full rounds, a fence drops an unfinished iteration and keeps a whole one") {
  FullRounds scene(2);
  for (const std::uint32_t bucket : {0u, 1u}) scene.take(scene.policy, push_of(kA, 0, bucket));
  scene.take(scene.policy, push_of(kB, 0, 0));
  for (const WorkerId worker : {kA, kB}) scene.clocks.fence(worker);
  CHECK(scene.policy.fence(kA).clock == Clock(1));
  const auto progress = scene.policy.fence(kB);
  CHECK(progress.clock == Clock(0));
  CHECK(progress.applied.empty());
  CHECK(scene.sink.forgotten == Names{{1, 0}});
}

TEST_CASE("in full rounds, the end applies whole pushes of a round that no worker completes") {
  FullRounds scene;
  scene.take(scene.policy, push_of(kA, 0));
  for (const WorkerId worker : {kA, kB, kC}) scene.clocks.remove(worker);
  scene.policy.apply_complete(scene.out);
  CHECK(scene.sink.updates.empty());
  scene.policy.finish(scene.out);
  CHECK(scene.sink.updates == PushNames{{{0, 0}}});
}

TEST_CASE("the leading shard proposes a round when all but the spare workers have pushed") {
  FirstPushes scene;
  scene.take(scene.policy, push_of(kC, 0));
  CHECK(scene.proposals().empty());
  scene.take(scene.policy, push_of(kA, 0));
  REQUIRE(scene.proposals().size() == 1);
  CHECK(scene.proposals()[0].round == Iteration(0));
  CHECK(scene.proposals()[0].contributors == std::vector{kA, kC});
}

TEST_CASE("a round is proposed again only for another view or further pushes") {
  FirstPushes scene;
  for (const WorkerId worker : {kA, kB}) scene.take(scene.policy, push_of(worker, 0));
  scene.policy.propose(scene.out);
  CHECK(scene.proposals().size() == 1);
  scene.clocks.enter_view(View(7));
  scene.policy.propose(scene.out);
  REQUIRE(scene.proposals().size() == 2);
  CHECK(scene.proposals()[1].view == View(7));
  scene.take(scene.policy, push_of(kC, 0));
  CHECK(scene.proposals().size() == 3);
}

TEST_CASE("a round with enough pushes waits for more until its grace window ends") {
  FirstPushes scene(1, GraceWindow::fixed(milliseconds(20)));
  scene.take(scene.policy, push_of(kC, 0));
  scene.out.advance(milliseconds(5));
  scene.take(scene.policy, push_of(kA, 0));
  CHECK(scene.proposals().empty());
  REQUIRE(scene.out.timers() == std::vector{milliseconds(20)});
  scene.out.advance(milliseconds(20));
  scene.policy.on_timer(scene.out);
  REQUIRE(scene.proposals().size() == 1);
  CHECK(scene.proposals()[0].contributors == std::vector{kA, kC});
}

TEST_CASE("a round that all workers have pushed waits no longer") {
  FirstPushes scene(1, GraceWindow::fixed(milliseconds(20)));
  for (const WorkerId worker : {kA, kC, kB}) scene.take(scene.policy, push_of(worker, 0));
  REQUIRE(scene.proposals().size() == 1);
  CHECK(scene.proposals()[0].contributors == std::vector{kA, kB, kC});
}

TEST_CASE("one timer serves the grace windows of several rounds") {
  FirstPushes scene(1, GraceWindow::fixed(milliseconds(20)));
  for (const WorkerId worker : {kA, kC, kB}) scene.take(scene.policy, push_of(worker, 0));
  REQUIRE(scene.close(0, {kA, kB, kC}));
  scene.policy.apply_closed(scene.out);
  scene.out.advance(milliseconds(15));
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 1));
  CHECK(scene.out.timers() == std::vector{milliseconds(20)});
  scene.out.advance(milliseconds(5));
  scene.policy.on_timer(scene.out);  // of round 0
  CHECK(scene.proposals().size() == 1);
  CHECK(scene.out.timers() == std::vector{milliseconds(20), milliseconds(15)});
  scene.out.advance(milliseconds(15));
  scene.policy.on_timer(scene.out);
  CHECK(scene.proposals().size() == 2);
}

TEST_CASE("under mad, rounds wait longer until eight arrivals are known") {
  FirstPushes scene(1, GraceWindow::adaptive());
  for (const std::int64_t iteration : {0, 1, 2}) {
    scene.out.advance(milliseconds(1));
    for (const WorkerId worker : {kA, kC, kB}) scene.take(scene.policy, push_of(worker, iteration));
    REQUIRE(scene.close(iteration, {kA, kB, kC}));
    scene.policy.apply_closed(scene.out);
  }
  CHECK(scene.proposals().size() == 3);
  // In round 1, until four times the 1 ms of the first arrival; the opening of round 0 is unknown.
  CHECK(scene.out.timers() == std::vector{milliseconds(3)});
  scene.out.advance(milliseconds(1));
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 3));
  CHECK(scene.proposals().size() == 4);  // the median arrival is 1 ms after the opening
  CHECK(scene.proposals().back().contributors == std::vector{kA, kC});
}

TEST_CASE("a timer that runs for a later time does not delay an earlier grace window") {
  FirstPushes scene(1, GraceWindow::fixed(milliseconds(20)));
  auto state = scene.policy.save();
  state.gathering.timer = milliseconds(500).ns;
  scene.policy.restore(state);
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 0));
  CHECK(scene.out.timers() == std::vector{milliseconds(20)});
}

TEST_CASE("when the run stops, the grace window ends, also on a restored shard") {
  FirstPushes scene(1, GraceWindow::fixed(seconds(60)));
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 0));
  CHECK(scene.proposals().empty());
  scene.policy.end_grace(scene.out);
  REQUIRE(scene.proposals().size() == 1);
  CHECK(scene.proposals()[0].contributors == std::vector{kA, kC});
  FirstPushes standby(1, GraceWindow::fixed(seconds(60)));
  for (const WorkerId worker : {kA, kC}) standby.clocks.accept(worker, Iteration(0), 0, 1);
  standby.policy.restore(scene.policy.save());
  standby.clocks.enter_view(View(7));  // so that the standby proposes again
  standby.policy.propose(standby.out);
  CHECK(standby.proposals().size() == 1);
  CHECK(standby.out.timers().empty());
}

TEST_CASE("under mad, the pushes that missed a round count as arrivals") {
  FirstPushes scene(1, GraceWindow::adaptive());
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 0));
  CHECK(scene.proposals().empty());
  scene.policy.end_grace(scene.out);  // as if the window had ended
  REQUIRE(scene.close(0, {kA, kC}));
  scene.policy.apply_closed(scene.out);
  CHECK(scene.policy.save().gathering.arrivals == std::vector{GraceWindow::kMissed.ns});
}

TEST_CASE("a restored shard continues a grace window") {
  FirstPushes scene(1, GraceWindow::fixed(milliseconds(20))),
      standby(1, GraceWindow::fixed(milliseconds(20)));
  for (FirstPushes* one : {&scene, &standby}) one->out.advance(milliseconds(5));
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 0));
  for (const WorkerId worker : {kA, kC}) standby.clocks.accept(worker, Iteration(0), 0, 1);
  standby.policy.restore(scene.policy.save());
  standby.out.advance(milliseconds(19));
  standby.policy.propose(standby.out);
  CHECK(standby.proposals().empty());
  CHECK(standby.out.timers().empty());  // it has the primary's
  standby.out.advance(milliseconds(1));
  standby.policy.on_timer(standby.out);
  CHECK(standby.proposals().size() == 1);
}

TEST_CASE("the pushes of a closed round are applied with its scale") {
  FirstPushes scene;
  scene.scale = 0.5;
  for (const WorkerId worker : {kA, kB, kC}) {
    auto push = push_of(worker, 0);
    push.weight = 0.5;
    scene.take(scene.policy, push);
  }
  REQUIRE(scene.close(0, {kA, kB, kC}));
  scene.policy.apply_closed(scene.out);
  CHECK(scene.sink.weights == std::vector{0.25, 0.25, 0.25});
}

TEST_CASE("a shard that does not lead proposes no round") {
  Scene scene;
  Channel scheduler(kScheduler);
  ApplyFirstPushes policy(RoundSize::all_but(1), GraceWindow::fixed({}), false, 1, scene.clocks,
                          scene.sink, scheduler);
  for (const WorkerId worker : {kA, kB, kC}) scene.take(policy, push_of(worker, 0));
  CHECK(scene.out.sent<msg::RoundClosed>(kScheduler).empty());
}

TEST_CASE("a worker with an empty push does not count as a contributor with samples") {
  FirstPushes scene;
  for (const WorkerId worker : {kA, kB}) scene.take(scene.policy, push_of(worker, 0, 0, true));
  CHECK(scene.proposals().empty());  // the only worker with samples is still to push
  scene.take(scene.policy, push_of(kC, 0));
  CHECK(scene.proposals().size() == 1);
}

TEST_CASE("a closed round applies its contributors' pushes and drops all others") {
  FirstPushes scene(2);
  for (const WorkerId worker : {kC, kA})
    for (const std::uint32_t bucket : {0u, 1u})
      scene.take(scene.policy, push_of(worker, 0, bucket));
  scene.take(scene.policy, push_of(kB, 0, 0));
  REQUIRE(scene.close(0, {kA, kC}));
  CHECK(scene.policy.apply_closed(scene.out) == kA);  // the last contributor to arrive
  const Names round = {{0, 0}, {2, 0}};
  CHECK(scene.sink.updates == PushNames{round, round});
  CHECK(scene.sink.dropped == Names{{1, 0}});
  CHECK(scene.clock_values() == std::vector<std::int64_t>{1, 1, 1});
  const auto dropped = scene.out.events<event::PushDropped>();
  REQUIRE(dropped.size() == 1);
  CHECK(dropped[0].worker == kB);
}

TEST_CASE("a closed round waits for a contributor's push that has not arrived") {
  FirstPushes scene;
  scene.take(scene.policy, push_of(kA, 0));
  REQUIRE(scene.close(0, {kA, kB}));
  CHECK(scene.policy.apply_closed(scene.out) == std::nullopt);
  CHECK(scene.take(scene.policy, push_of(kB, 0)) == kB);
  CHECK(scene.sink.updates == PushNames{{{0, 0}, {1, 0}}});
}

TEST_CASE("only the open round, with known contributors, can be closed, and only once") {
  FirstPushes scene;
  CHECK_FALSE(scene.close(1, {kA, kB}));
  CHECK_FALSE(scene.close(0, {kA, WorkerId(9)}));
  CHECK(scene.close(0, {kA, kB}));
  CHECK_FALSE(scene.close(0, {kA, kB}));
}

TEST_CASE("a fenced contributor whose push is not whole is left out of the closed round") {
  FirstPushes scene(2);
  for (const std::uint32_t bucket : {0u, 1u}) scene.take(scene.policy, push_of(kA, 0, bucket));
  scene.take(scene.policy, push_of(kB, 0, 0));
  REQUIRE(scene.close(0, {kA, kB}));
  scene.clocks.fence(kB);
  CHECK(scene.policy.fence(kB).clock == Clock(0));
  CHECK(scene.sink.forgotten == Names{{1, 0}});
  CHECK(scene.policy.release(kB, scene.out) == kA);
  CHECK(scene.sink.updates == PushNames{{{0, 0}}, {{0, 0}}});
}

TEST_CASE("a fence finds a whole push of a closed round applied, and a dropped one finished") {
  FirstPushes scene;
  for (const WorkerId worker : {kA, kC}) scene.take(scene.policy, push_of(worker, 0));
  REQUIRE(scene.close(0, {kA, kB}));
  CHECK(scene.policy.fence(kA).clock == Clock(1));
  CHECK(scene.policy.fence(kC).clock == Clock(1));
  CHECK(scene.sink.forgotten == Names{{2, 0}});
}

TEST_CASE("only rounds of first pushes can be closed") {
  OnArrival on_arrival;
  FullRounds full;
  const msg::CloseRound order{Iteration(0), {kA}, View(1)};
  CHECK_FALSE(on_arrival.policy.close(order));
  CHECK_FALSE(full.policy.close(order));
}

}  // namespace leeway::test
