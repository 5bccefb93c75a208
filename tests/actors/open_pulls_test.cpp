#include "actors/shard/open_pulls.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

namespace {

using Pulls = std::vector<OpenPulls::Pull>;

OpenPulls::Pull pull_of(std::uint32_t worker, std::int64_t iteration) {
  return {WorkerId(worker), Iteration(iteration)};
}

/// The pulls that become outdated when an iteration of this weight is pushed.
Pulls outdated_by(OpenPulls& open, double weight) {
  open.advance(weight);
  return open.take_outdated();
}

}  // namespace

TEST_CASE("a pull is outdated once, when the pushes since its answer reach the limit", "[delay]") {
  OpenPulls open(1);
  open.answered(pull_of(0, 0));
  CHECK(outdated_by(open, 0.5).empty());
  open.answered(pull_of(1, 0));
  CHECK(outdated_by(open, 0.5) == Pulls{pull_of(0, 0)});
  CHECK(outdated_by(open, 0.5) == Pulls{pull_of(1, 0)});
  CHECK(outdated_by(open, 5).empty());
}

TEST_CASE("a limit is reached by weights whose sum is rounded", "[delay]") {
  OpenPulls open(1);
  open.answered(pull_of(0, 0));
  for (int push = 0; push < 9; ++push) CHECK(outdated_by(open, 0.1).empty());
  CHECK(outdated_by(open, 0.1) == Pulls{pull_of(0, 0)});  // 0.1 ten times is less than 1 in binary
}

TEST_CASE("a pull is closed by a push, replaced by another answer, and forgotten with its worker",
          "[delay]") {
  OpenPulls open(1);
  open.answered(pull_of(0, 0));
  open.answered(pull_of(0, 1));
  open.answered(pull_of(1, 0));
  open.answered(pull_of(2, 0));
  CHECK(outdated_by(open, 0.75).empty());
  open.pushed(pull_of(0, 0));
  open.answered(pull_of(1, 0));
  open.forget(WorkerId(2));
  CHECK(outdated_by(open, 0.5) == Pulls{pull_of(0, 1)});
  CHECK(outdated_by(open, 0.5) == Pulls{pull_of(1, 0)});
}

TEST_CASE("restored pulls are as old as before", "[delay]") {
  OpenPulls open(2), restored(2);
  open.answered(pull_of(3, 4));
  CHECK(outdated_by(open, 1.5).empty());
  open.answered(pull_of(4, 4));
  restored.restore(open.save());
  CHECK(outdated_by(restored, 0.5) == Pulls{pull_of(3, 4)});
  CHECK(outdated_by(restored, 1.5) == Pulls{pull_of(4, 4)});
}

TEST_CASE("an outdated pull is known until its worker pulls or pushes again", "[delay]") {
  OpenPulls open(1);
  open.answered(pull_of(0, 0));
  open.answered(pull_of(1, 0));
  CHECK(open.outdated(WorkerId(0)).empty());
  CHECK(outdated_by(open, 1).size() == 2);
  CHECK(open.outdated(WorkerId(0)) == Pulls{pull_of(0, 0)});
  open.answered(pull_of(0, 0));
  open.pushed(pull_of(1, 0));
  CHECK(open.outdated(WorkerId(0)).empty());
  CHECK(open.outdated(WorkerId(1)).empty());
}

TEST_CASE("of a worker with too many pulls the oldest are forgotten", "[delay]") {
  OpenPulls open(1);
  for (std::int64_t iteration = 0; iteration < 5; ++iteration) open.answered(pull_of(0, iteration));
  open.answered(pull_of(1, 0));
  CHECK(outdated_by(open, 1) == Pulls{pull_of(0, 3), pull_of(0, 4), pull_of(1, 0)});
}
