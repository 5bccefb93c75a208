// BoundChecker, and those that judge by its books, fed with a bound that moves.
#include "sim/checkers/bounds.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "sim/checkers/parked.hpp"
#include "sim/checkers/rule.hpp"
#include "sim/observers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

const Address kShard = address_of(ShardId(0));
const WorkerId kFast(0), kSlow(1);

/// One shard, two workers, a bound of 1 to 4; the fast one has pushed two iterations.
class Story {
 public:
  Story() {
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
    for (const WorkerId worker : {kFast, kSlow}) happens(event::Admitted{.worker = worker});
    for (const std::int64_t i : {0, 1}) {
      asks(i);
      answered(i);
      happens(event::ClockMoved{kFast, Clock(i + 1)});
    }
  }

  void announced(std::int64_t from, std::uint32_t staleness) {
    gets(kScheduler, msg::Bound{Iteration(from), staleness});
  }
  void changed(std::int64_t from, std::uint32_t bound) {
    happens(event::BoundChanged{Iteration(from), bound});
  }
  void asks(std::int64_t i) { gets(address_of(kFast), msg::Pull{Iteration(i), Clock(i)}); }
  void answered(std::int64_t i) {
    happens(event::PullAnswered{.worker = kFast, .iteration = Iteration(i)});
  }
  /// What comes next shows what was left undone.
  void something() { gets(address_of(kSlow), msg::Push{.bucket_count = 1}); }

 private:
  void happens(const Event& event) { observers_.event({}, kShard, event); }
  void gets(Address from, Body body) {
    observers_.delivered({}, {from, kShard, encode({.body = std::move(body)})});
  }
  Observers observers_;
};

/// What is seen of a violation that `deeds` commit; empty if they commit none.
std::string seen(const std::function<void(Story&)>& deeds) {
  Story story;
  try {
    deeds(story);
    story.something();
  } catch (const Violation& violation) {
    return violation.seen();
  }
  return "";
}

}  // namespace

TEST_CASE("a pull is judged by the bound that holds where it is answered") {
  CHECK(seen([](Story& story) {
          story.asks(2);
          story.answered(2);
        }) == "iteration 2 answered at min_clock 0, the bound is 1");
  CHECK(seen([](Story& story) {
          story.asks(2);
          story.announced(0, 2);
          story.changed(2, 2);
          story.answered(2);
        }) == "");
  CHECK(seen([](Story& story) {
          story.asks(2);
          story.announced(0, 2);
          story.changed(2, 2);
        }) != "");  // left waiting
}

TEST_CASE("a bound that changes for iterations that somebody was let into is caught") {
  CHECK(seen([](Story& story) {
          story.announced(0, 3);
          story.changed(2, 3);
          story.announced(2, 1);
          story.changed(2, 1);
        }) == "");
  CHECK(
      seen([](Story& story) {
        story.announced(0, 3);
        story.changed(1, 3);
      }) ==
      "the bound of iteration 1 became 3, although the shard had answered pulls up to iteration 1");
}

TEST_CASE("a bound that is not taken in, or late, or another, is caught") {
  CHECK(seen([](Story& story) { story.announced(0, 3); }) == "the announced bound 3 was ignored");
  CHECK(seen([](Story& story) {
          story.announced(5, 3);
          story.changed(5, 3);
        }) == "the bound of iteration 2 stayed at 1 when it could be raised to 3");
  CHECK(seen([](Story& story) {
          story.announced(0, 3);
          story.changed(2, 4);
        }) == "the bound became 4, which the scheduler did not announce");
  CHECK(seen([](Story& story) { story.changed(2, 2); }) != "");
  CHECK(seen([](Story& story) {
          story.announced(0, 5);
          story.changed(2, 5);
        }) == "the bound became 5, which is out of its range");
}

}  // namespace leeway::sim
