// The checkers of rounds that are closed early accept a valid run and name each violation.
#include <catch2/catch.hpp>

#include "sim/checkers/exactly_once.hpp"
#include "sim/checkers/rounds.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

const Address kRoundShard = address_of(ShardId(0));
const WorkerId kFirstWorker(0), kSecondWorker(1), kThirdWorker(2);

/// Three workers, one of them spare; a shard has two buckets.
struct RoundStory {
  RoundStory() {
    Plan plan = test::tiny_plan();
    plan.shards = 1;
    plan.model = {plan::Linear{6}, plan::Relu{}, plan::Linear{3}};
    plan.consistency = plan::Backup{1};
    checker = std::make_shared<RoundChecker>(test::job_of(plan));
  }
  void emits(const Event& event) { checker->on_event({}, kRoundShard, event); }
  void applied(WorkerId worker, std::int64_t round, std::vector<std::uint32_t> buckets = {0, 1}) {
    for (const std::uint32_t bucket : buckets)
      emits(
          event::BucketApplied{.worker = worker, .iteration = Iteration(round), .bucket = bucket});
  }
  void dropped(WorkerId worker, std::int64_t round) {
    emits(event::PushDropped{.worker = worker, .iteration = Iteration(round)});
  }
  void closes(std::int64_t round, std::vector<WorkerId> contributors, Address shard = kRoundShard) {
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
  RoundStory story;
  story.closes(0, {kFirstWorker, kSecondWorker});
  story.applied(kFirstWorker, 0);
  story.applied(kSecondWorker, 0);
  story.dropped(kThirdWorker, 0);
  story.closes(1, {kSecondWorker, kThirdWorker});
  story.applied(kSecondWorker, 1);
  // C is fenced before its push is complete here: omitted, even if C is admitted again at once.
  story.emits(event::Fenced{.worker = kThirdWorker});
  story.dropped(kThirdWorker, 1);
  story.dropped(kFirstWorker, 1);
  story.emits(event::Admitted{kThirdWorker, Iteration(3)});
  story.closes(2, {kFirstWorker});
  story.applied(kFirstWorker, 2);
  CHECK(seen([&] { story.run_ends(); }) == "");
}

TEST_CASE("a push that is applied although its worker did not contribute is caught") {
  RoundStory story;
  story.closes(3, {kFirstWorker});
  CHECK(seen([&] { story.applied(kSecondWorker, 3); }) ==
        "bucket 0 of iteration 3 applied; round 3 was closed last, without it");
  CHECK(seen([&] { story.applied(kFirstWorker, 4); }) != "");
  CHECK(seen([&] { story.applied(kFirstWorker, 2); }) != "");
}

TEST_CASE("a contributor whose push is missing or dropped is caught") {
  RoundStory story;
  story.closes(0, {kFirstWorker, kSecondWorker});
  CHECK(seen([&] { story.dropped(kSecondWorker, 0); }) ==
        "iteration 0 dropped, although it contributed to its round");
  story.applied(kFirstWorker, 0);
  story.applied(kSecondWorker, 0, {0});
  CHECK(seen([&] { story.closes(1, {kFirstWorker}); }) == "1 of 2 buckets of round 0 were applied");
  CHECK(seen([&] { story.run_ends(); }) != "");
}

TEST_CASE("too many dropped pushes, rounds out of order and shards that differ are caught") {
  RoundStory story;
  story.closes(0, {});
  story.dropped(kFirstWorker, 0);
  CHECK(seen([&] { story.dropped(kSecondWorker, 0); }) ==
        "2 pushes dropped in round 0; the limit is 1");
  CHECK(seen([&] { story.closes(0, {}); }) == "round 0 is closed after round 0");
  CHECK(seen([&] { story.closes(0, {kFirstWorker}, address_of(ShardId(1))); }) ==
        "round 0 is closed with other contributors here");
}

TEST_CASE("weights of a closed round that add up to too much or too little are caught") {
  RoundStory story;
  const auto leased = [&](WorkerId worker, std::int64_t round, std::int64_t samples) {
    msg::Lease lease{
        .end = samples, .first_iteration = Iteration(round), .batch = 4, .round_samples = 4};
    story.checker->on_delivered({},
                                Letter(kScheduler, address_of(worker), encode({.body = lease})));
  };
  const auto closed = [&](std::int64_t round, double scale, std::uint32_t shard = 0) {
    const msg::CloseRound order{
        Iteration(round), {kFirstWorker, kSecondWorker, kThirdWorker}, View(), scale};
    return seen([&] {
      story.checker->on_delivered(
          {}, Letter(kScheduler, address_of(ShardId(shard)), encode({.body = order})));
    });
  };
  const auto round_of = [&](std::vector<std::int64_t> samples, double scale) {
    story = RoundStory();
    for (std::uint32_t worker = 0; worker < samples.size(); ++worker)
      leased(WorkerId(worker), 0, samples[worker]);
    return closed(0, scale);
  };
  CHECK(round_of({2, 2, 2}, 2.0 / 3) == "");
  CHECK(round_of({2, 2, 2}, 1) == "the pushes of round 0 weigh 1.5 and are scaled by 1");
  CHECK(round_of({2, 2, 2}, 0.5) != "");
  CHECK(round_of({2, 1, 0}, 1) == "");
  CHECK(round_of({2, 1, 0}, 4.0 / 3) != "");
  CHECK(round_of({2, 1, 0}, 0.9) != "");
  CHECK(round_of({2, 2, 2}, 2.0 / 3) == "");
  CHECK(closed(0, 0.6, 1) == "round 0 is closed with another scale here");
}

TEST_CASE("a dropped push that is reported as partial is caught") {
  RoundStory story;
  story.closes(4, {kFirstWorker});
  const auto partial = [&](WorkerId worker, std::int64_t iteration) {
    return seen([&] {
      story.checker->on_event({}, kScheduler, event::PartialPush{worker, Iteration(iteration), 1});
    });
  };
  CHECK(partial(kFirstWorker, 4) == "");
  CHECK(partial(kSecondWorker, 4) == "iteration 4 is partial, but contributed to no round");
  CHECK(partial(kFirstWorker, 5) != "");
}

TEST_CASE("a worker that begins a round that it was ordered to skip is caught") {
  RoundStory story;
  const auto begins = [&](std::int64_t iteration) {
    return seen([&] {
      story.checker->on_event({}, address_of(kFirstWorker),
                              event::StepStarted{.iteration = Iteration(iteration)});
    });
  };
  CHECK(begins(2) == "");
  story.checker->on_delivered({}, Letter(kScheduler, address_of(kFirstWorker),
                                         encode({.body = msg::PushDropped{Iteration(3)}})));
  CHECK(begins(2) == "iteration 2 starts after an order to continue with iteration 3");
  CHECK(begins(3) == "");
}

TEST_CASE("a bucket of a dropped iteration may be acknowledged but not applied") {
  ExactlyOnceChecker checker;
  const auto applied = [&](WorkerId worker) {
    checker.on_event({}, kRoundShard,
                     event::BucketApplied{.worker = worker, .iteration = Iteration(1)});
  };
  const auto acknowledged = [&](std::int64_t iteration) {
    const auto message =
        encode({.session = Session(), .body = msg::Pushed{Iteration(iteration), 0}});
    checker.on_delivered({}, Letter(kRoundShard, address_of(kFirstWorker), message));
  };
  checker.on_event({}, kRoundShard,
                   event::PushDropped{.worker = kFirstWorker, .iteration = Iteration(1)});
  CHECK(seen([&] { acknowledged(1); }) == "");
  CHECK(seen([&] { acknowledged(2); }) != "");
  applied(kSecondWorker);
  CHECK(seen([&] { applied(kFirstWorker); }) ==
        "bucket 0 of iteration 1 applied, although its round was closed without it");
}

}  // namespace leeway::sim
