// The checkers of rounds that are closed early accept a valid run and name each violation.
#include <catch2/catch.hpp>

#include "sim/checkers/exactly_once.hpp"
#include "sim/checkers/rounds.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

const Address kShard = address_of(ShardId(0));
const WorkerId kA(0), kB(1), kC(2);

/// Three workers, one of them spare; a shard has two buckets.
struct Story {
  Story() {
    Plan plan = test::tiny_plan();
    plan.shards = 1;
    plan.model = {plan::Linear{6}, plan::Relu{}, plan::Linear{3}};
    plan.consistency = plan::Backup{1};
    checker = std::make_shared<RoundChecker>(test::job_of(plan));
  }
  void emits(const Event& event) { checker->on_event({}, kShard, event); }
  void applied(WorkerId worker, std::int64_t round, std::vector<std::uint32_t> buckets = {0, 1}) {
    for (const std::uint32_t bucket : buckets)
      emits(
          event::BucketApplied{.worker = worker, .iteration = Iteration(round), .bucket = bucket});
  }
  void dropped(WorkerId worker, std::int64_t round) {
    emits(event::PushDropped{.worker = worker, .iteration = Iteration(round)});
  }
  void closes(std::int64_t round, std::vector<WorkerId> contributors, Address shard = kShard) {
    const auto message =
        encode({.body = msg::CloseRound{Iteration(round), std::move(contributors)}});
    checker->on_delivered({}, Letter(kScheduler, shard, message));
  }
  void run_ends() {
    RunTotals totals;
    totals.end.reason = msg::RunEnded::Reason::finished;
    checker->on_run_ended(totals);
  }
  std::shared_ptr<RoundChecker> checker;
};

}  // namespace

TEST_CASE("a round may close early, and may omit a contributor that was fenced") {
  Story story;
  story.closes(0, {kA, kB});
  story.applied(kA, 0);
  story.applied(kB, 0);
  story.dropped(kC, 0);
  story.closes(1, {kB, kC});
  story.applied(kB, 1);
  // C is fenced before its push is complete here: omitted, even if C is admitted again at once.
  story.emits(event::Fenced{.worker = kC});
  story.dropped(kC, 1);
  story.dropped(kA, 1);
  story.emits(event::Admitted{kC, Iteration(3)});
  story.closes(2, {kA});
  story.applied(kA, 2);
  CHECK(seen([&] { story.run_ends(); }) == "");
}

TEST_CASE("a push that is applied although its worker did not contribute is caught") {
  Story story;
  story.closes(3, {kA});
  CHECK(seen([&] { story.applied(kB, 3); }) ==
        "bucket 0 of iteration 3 applied; round 3 was closed last, without it");
  CHECK(seen([&] { story.applied(kA, 4); }) != "");
  CHECK(seen([&] { story.applied(kA, 2); }) != "");
}

TEST_CASE("a contributor whose push is missing or dropped is caught") {
  Story story;
  story.closes(0, {kA, kB});
  CHECK(seen([&] { story.dropped(kB, 0); }) ==
        "iteration 0 dropped, although it contributed to its round");
  story.applied(kA, 0);
  story.applied(kB, 0, {0});
  CHECK(seen([&] { story.closes(1, {kA}); }) == "1 of 2 buckets of round 0 were applied");
  CHECK(seen([&] { story.run_ends(); }) != "");
}

TEST_CASE("too many dropped pushes, rounds out of order and shards that differ are caught") {
  Story story;
  story.closes(0, {});
  story.dropped(kA, 0);
  CHECK(seen([&] { story.dropped(kB, 0); }) == "2 pushes dropped in round 0; the limit is 1");
  CHECK(seen([&] { story.closes(0, {}); }) == "round 0 is closed after round 0");
  CHECK(seen([&] { story.closes(0, {kA}, address_of(ShardId(1))); }) ==
        "round 0 is closed with other contributors here");
}

TEST_CASE("a dropped push that is reported as partial is caught") {
  Story story;
  story.closes(4, {kA});
  const auto partial = [&](WorkerId worker, std::int64_t iteration) {
    return seen([&] {
      story.checker->on_event({}, kScheduler, event::PartialPush{worker, Iteration(iteration), 1});
    });
  };
  CHECK(partial(kA, 4) == "");
  CHECK(partial(kB, 4) == "iteration 4 is partial, but contributed to no round");
  CHECK(partial(kA, 5) != "");
}

TEST_CASE("a worker that begins a round that it was ordered to skip is caught") {
  Story story;
  const auto begins = [&](std::int64_t iteration) {
    return seen([&] {
      story.checker->on_event({}, address_of(kA),
                              event::StepStarted{.iteration = Iteration(iteration)});
    });
  };
  CHECK(begins(2) == "");
  story.checker->on_delivered(
      {}, Letter(kScheduler, address_of(kA), encode({.body = msg::PushDropped{Iteration(3)}})));
  CHECK(begins(2) == "iteration 2 starts after an order to continue with iteration 3");
  CHECK(begins(3) == "");
}

TEST_CASE("a bucket of a dropped iteration may be acknowledged but not applied") {
  ExactlyOnceChecker checker;
  const auto applied = [&](WorkerId worker) {
    checker.on_event({}, kShard, event::BucketApplied{.worker = worker, .iteration = Iteration(1)});
  };
  const auto acknowledged = [&](std::int64_t iteration) {
    const auto message =
        encode({.incarnation = Incarnation(), .body = msg::Pushed{Iteration(iteration), 0}});
    checker.on_delivered({}, Letter(kShard, address_of(kA), message));
  };
  checker.on_event({}, kShard, event::PushDropped{.worker = kA, .iteration = Iteration(1)});
  CHECK(seen([&] { acknowledged(1); }) == "");
  CHECK(seen([&] { acknowledged(2); }) != "");
  applied(kB);
  CHECK(seen([&] { applied(kA); }) ==
        "bucket 0 of iteration 1 applied, although its round was closed without it");
}

}  // namespace leeway::sim
