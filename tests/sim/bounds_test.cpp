// BoundChecker, and the checkers that read its records, with a moving bound.
#include "sim/checkers/bounds.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "sim/checkers/parked.hpp"
#include "sim/checkers/rule.hpp"
#include "sim/observers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

const Address kBoundedShard = address_of(ShardId(0));
const WorkerId kFast(0), kSlow(1);

/// One shard, two workers, a bound of 1 to 4. The fast worker has pushed two iterations.
class BoundStory {
 public:
  BoundStory() {
    Plan plan = test::tiny_plan();
    plan.consistency = plan::Adaptive{1, 4};
    const auto job = test::job_of(plan);
    const auto clocks = std::make_shared<ClockChecker>();
    const auto bounds = std::make_shared<BoundChecker>(job, clocks);
    for (const std::shared_ptr<Observer>& observer :
         {std::shared_ptr<Observer>(clocks), std::shared_ptr<Observer>(bounds),
          std::shared_ptr<Observer>(std::make_shared<RuleChecker>(clocks, bounds)),
          std::shared_ptr<Observer>(std::make_shared<ParkedChecker>(clocks, bounds))})
      observers_.add(observer);
    for (const WorkerId worker : {kFast, kSlow}) emits(event::Admitted{.worker = worker});
    for (const std::int64_t i : {0, 1}) {
      pulls(i);
      answered(i);
      emits(event::ClockMoved{kFast, Clock(i + 1)});
    }
  }

  void announced(std::int64_t from, std::uint32_t staleness) {
    delivers(kScheduler, msg::Bound{Iteration(from), staleness});
  }
  void changed(std::int64_t from, std::uint32_t bound) {
    emits(event::BoundChanged{Iteration(from), bound});
  }
  void pulls(std::int64_t i) { delivers(address_of(kFast), msg::Pull{Iteration(i), Clock(i)}); }
  void answered(std::int64_t i) {
    emits(event::PullAnswered{.worker = kFast, .iteration = Iteration(i)});
  }
  /// Any further message. Checkers detect omissions at the next message.
  void next_message() { delivers(address_of(kSlow), msg::Push{.bucket_count = 1}); }

 private:
  void emits(const Event& event) { observers_.event({}, kBoundedShard, event); }
  void delivers(Address from, Body body) {
    observers_.delivered({}, {from, kBoundedShard, encode({.body = std::move(body)})});
  }
  Observers observers_;
};

/// The observation of the violation that `actions` cause; empty without a violation.
std::string seen_in_story(const std::function<void(BoundStory&)>& actions) {
  BoundStory story;
  try {
    actions(story);
    story.next_message();
  } catch (const Violation& violation) {
    return violation.seen();
  }
  return "";
}

}  // namespace

TEST_CASE("a pull is checked against the current bound of its shard") {
  CHECK(seen_in_story([](BoundStory& story) {
          story.pulls(2);
          story.answered(2);
        }) == "iteration 2 answered at min_clock 0, the bound is 1");
  CHECK(seen_in_story([](BoundStory& story) {
          story.pulls(2);
          story.announced(0, 2);
          story.changed(2, 2);
          story.answered(2);
        }) == "");
  CHECK(seen_in_story([](BoundStory& story) {
          story.pulls(2);
          story.announced(0, 2);
          story.changed(2, 2);
        }) != "");  // still parked
}

TEST_CASE("a changed bound of an iteration that a worker has started is caught") {
  CHECK(seen_in_story([](BoundStory& story) {
          story.announced(0, 3);
          story.changed(2, 3);
          story.announced(2, 1);
          story.changed(2, 1);
        }) == "");
  CHECK(
      seen_in_story([](BoundStory& story) {
        story.announced(0, 3);
        story.changed(1, 3);
      }) ==
      "the bound of iteration 1 became 3, although the shard had answered pulls up to iteration 1");
}

TEST_CASE(
    "a bound that is ignored, applied too late or different from the announced one is caught") {
  CHECK(seen_in_story([](BoundStory& story) { story.announced(0, 3); }) ==
        "the announced bound 3 was ignored");
  CHECK(seen_in_story([](BoundStory& story) {
          story.announced(5, 3);
          story.changed(5, 3);
        }) == "the bound of iteration 2 stayed at 1 when it could be raised to 3");
  CHECK(seen_in_story([](BoundStory& story) {
          story.announced(0, 3);
          story.changed(2, 4);
        }) == "the bound became 4, which the scheduler did not announce");
  CHECK(seen_in_story([](BoundStory& story) { story.changed(2, 2); }) != "");
  CHECK(seen_in_story([](BoundStory& story) {
          story.announced(0, 5);
          story.changed(2, 5);
        }) == "the bound became 5, which is out of its range");
}

}  // namespace leeway::sim
