#include "policies/consistency/consistency.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "policies/automatic_plan.hpp"
#include "policies/consistency/asp.hpp"
#include "policies/consistency/automatic.hpp"
#include "policies/consistency/backup.hpp"
#include "policies/consistency/bsp.hpp"
#include "policies/consistency/quorum.hpp"
#include "policies/consistency/ssp.hpp"

using namespace leeway;

namespace {

bool starts(std::int64_t iteration, std::int64_t min_clock, std::int64_t clock,
            std::int64_t own_clock, std::int64_t bound) {
  return may_start(Iteration(iteration), Clock(min_clock), Clock(clock), Clock(own_clock), bound);
}

/// The clocks of workers that follow a policy.
struct Race {
  const Consistency& policy;
  std::vector<std::int64_t> clocks;

  std::int64_t min_clock() const { return *std::min_element(clocks.begin(), clocks.end()); }
  std::int64_t max_clock() const { return *std::max_element(clocks.begin(), clocks.end()); }
  /// Whether a shard answers the worker's pull for its next iteration, after all of its pushes.
  bool may_continue(std::size_t worker) const {
    const std::int64_t own = clocks[worker];
    return starts(own, min_clock(), own, own, policy.bound());
  }
};

std::int64_t any_count() {
  return *rc::gen::inRange<std::int64_t>(0, 1000);
}
std::int64_t any_bound() {
  return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 20), rc::gen::just(kUnbounded));
}

}  // namespace

TEST_CASE("under bound 1 a fast worker waits when it is two iterations ahead") {
  const Ssp policy(1);
  Race race{policy, {0, 0}};
  const std::size_t a = 0, b = 1;
  CHECK(race.may_continue(a));
  CHECK(race.may_continue(b));
  race.clocks[a] = 1;  // A pushes 0
  CHECK(race.may_continue(a));
  race.clocks[a] = 2;  // A pushes 1
  CHECK_FALSE(race.may_continue(a));
  race.clocks[b] = 1;  // B pushes 0
  CHECK(race.may_continue(a));
}

TEST_CASE("the staleness rule, case by case") {
  struct Case {
    std::int64_t iteration, min_clock, clock, own_clock, bound;
    bool may;
  };
  const auto c = GENERATE(values<Case>({
      {0, 0, 0, 0, 0, true},   // the very first pull
      {1, 0, 1, 1, 0, false},  // the barrier: another worker has not finished 0
      {1, 1, 1, 1, 0, true},   //
      {3, 0, 3, 3, 3, true},   // exactly the bound ahead
      {4, 0, 4, 4, 3, false},  // one too far
      {4, 1, 4, 4, 3, true},   //
      {1, 0, 0, 0, 1, true},   // a prefetch for 1 while 0 is computed
      {2, 0, 1, 1, 1, false},  //
      {5, 7, 7, 5, 0, true},   // behind all others, after an admission
      {2, 2, 1, 2, 3, false},  // the pull has overtaken the worker's own push
      {2, 2, 2, 2, 3, true},   //
      {1000, 0, 1000, 1000, kUnbounded, true},
      {1000, 0, 999, 1000, kUnbounded, false},  // waits for own pushes under any bound
  }));
  CAPTURE(c.iteration, c.min_clock, c.clock, c.own_clock, c.bound);
  CHECK(starts(c.iteration, c.min_clock, c.clock, c.own_clock, c.bound) == c.may);
}

TEST_CASE("the staleness rule has the properties that the protocol requires") {
  rc::prop("a pull that may be answered stays so when min_clock advances", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_bound(), more = any_count();
    if (starts(iteration, least, clock, own, bound))
      RC_ASSERT(starts(iteration, least + more, clock, own, bound));
  });
  rc::prop("a worker that may start an iteration may start any earlier one", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_bound(), less = any_count();
    if (starts(iteration, least, clock, own, bound))
      RC_ASSERT(starts(iteration - less, least, clock, own, bound));
  });
  rc::prop("a larger bound or clock never forbids a start", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_count(), more = any_count();
    if (starts(iteration, least, clock, own, bound)) {
      RC_ASSERT(starts(iteration, least, clock, own, bound + more));
      RC_ASSERT(starts(iteration, least, clock + more, own, bound));
      RC_ASSERT(starts(iteration, least, clock, own, kUnbounded));
    }
  });
  rc::prop("it depends only on the distance to min_clock, and is sharp", [] {
    const auto least = any_count(), bound = any_count(), clock = any_count();
    RC_ASSERT(starts(least + bound, least, clock, clock, bound));
    RC_ASSERT(!starts(least + bound + 1, least, clock, clock, bound));
  });
  rc::prop("a pull waits for pushes on their way under any bound", [] {
    const auto own = any_count() + 1, missing = *rc::gen::inRange<std::int64_t>(1, own + 1);
    RC_ASSERT(!starts(own, own, own - missing, own, any_bound()));
    RC_ASSERT(starts(own, own, own, own, any_bound()));
  });
  rc::prop("without a bound no worker waits for another", [] {
    const auto clock = any_count();
    RC_ASSERT(starts(any_count() * any_count(), 0, clock, clock, kUnbounded));
  });
}

TEST_CASE("under bound 0 an iteration starts when all workers have finished the previous one") {
  rc::prop("s = 0", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    RC_ASSERT(starts(iteration, least, clock, clock, 0) == (least >= iteration));
  });
}

TEST_CASE("under bound s clocks differ by at most s + 1, and the slowest worker may continue") {
  rc::prop("any order of finishing", [] {
    const auto bound = *rc::gen::inRange<std::int64_t>(0, 5);
    const Ssp ssp(bound);
    const Bsp bsp;
    const Consistency& policy = bound == 0 ? static_cast<const Consistency&>(bsp) : ssp;
    Race race{policy, std::vector<std::int64_t>(*rc::gen::inRange<std::size_t>(1, 6))};
    const auto order = *rc::gen::container<std::vector<std::size_t>>(
        300, rc::gen::inRange<std::size_t>(0, race.clocks.size()));
    std::int64_t widest = 0;
    for (const std::size_t worker : order) {
      if (race.may_continue(worker)) ++race.clocks[worker];
      widest = std::max(widest, race.max_clock() - race.min_clock());
      RC_ASSERT(widest <= bound + 1);
      const auto slowest = static_cast<std::size_t>(
          std::min_element(race.clocks.begin(), race.clocks.end()) - race.clocks.begin());
      RC_ASSERT(race.may_continue(slowest));
    }
  });
}

TEST_CASE("bsp, ssp and asp differ by their bound, and only bsp has rounds") {
  CHECK(Bsp().bound() == 0);
  CHECK(Ssp(0).bound() == 0);
  CHECK(Ssp(7).bound() == 7);
  CHECK(Asp().bound() == kUnbounded);
  CHECK(Bsp().by_rounds());
  CHECK_FALSE(Ssp(0).by_rounds());
  CHECK_FALSE(Asp().by_rounds());
}

TEST_CASE("a backup round waits for all workers except the spare ones, and for at least one") {
  const Backup backup(2);
  CHECK(backup.by_rounds());
  CHECK(backup.bound() == 0);
  const RoundSize size = backup.round_size();
  CHECK(size.drops());
  CHECK(size.of(6) == 4);
  CHECK(size.of(3) == 1);
  CHECK(size.of(2) == 1);
  CHECK(size.of(1) == 1);
  CHECK(RoundSize::all_but(0xffffffffu).of(4096) == 1);
  CHECK(size.most_dropped(6) == 2);
  CHECK(size.most_dropped(2) == 1);
}

TEST_CASE("a bsp round waits for all workers") {
  CHECK_FALSE(Bsp().round_size().drops());
  CHECK(Bsp().round_size().of(6) == 6);
}

TEST_CASE("a round with a quorum waits for that many workers, or for all if there are fewer") {
  const Quorum quorum(plan::Quorum{3, 20});
  CHECK(quorum.by_rounds());
  CHECK(quorum.bound() == 0);
  CHECK(quorum.round_size().drops());
  CHECK(quorum.round_size().of(8) == 3);
  CHECK(quorum.round_size().of(2) == 2);
  CHECK(quorum.round_size().most_dropped(8) == 5);
  CHECK(quorum.round_size().most_dropped(2) == 0);
}

TEST_CASE("auto starts with its largest bound, which may fall to 0") {
  const Automatic automatic(16);
  CHECK_FALSE(automatic.by_rounds());
  CHECK(automatic.bound() == 0);
  CHECK(automatic.first_bound() == 16);
  CHECK(automatic.largest_bound() == 16);
  CHECK(automatic.has_moving_bound());
  CHECK(make_consistency(plan::Adaptive{2, 5})->first_bound() == 2);
}

TEST_CASE("auto balances by speed, and orders momentum unless the plan has a delay policy") {
  Plan plan;
  plan.optimizer.kind = plan::Momentum{};
  CHECK(with_automatic_settings(plan) == plan);
  plan.consistency = plan::Automatic{};
  const Plan ordered = with_automatic_settings(plan);
  CHECK(ordered.balance == plan::Balance::by_speed);
  CHECK(ordered.delay_policy == plan::DelayPolicy(plan::OrderedMomentum{}));
  plan.delay_policy = plan::GapAware{};
  CHECK(with_automatic_settings(plan).delay_policy == plan.delay_policy);
  plan.delay_policy = {};
  for (const plan::OptimizerKind& kind :
       {plan::OptimizerKind(plan::Sgd{}), plan::OptimizerKind(plan::Adam{}),
        plan::OptimizerKind(plan::Sum{}), plan::OptimizerKind(plan::Momentum{0.9, 0.5})}) {
    plan.optimizer.kind = kind;
    CHECK(with_automatic_settings(plan).delay_policy == plan.delay_policy);
  }
}

TEST_CASE("mixed precision sends weights and activations in bf16, or by the plan's codec") {
  Plan plan;
  plan.precision = "mixed,0=fp32";
  plan::Compression sent = with_automatic_settings(plan).compress;
  CHECK(sent == plan::Compression{.pull = plan::Bf16{}});
  plan.pipeline.stages = 2;
  plan.compress.activations = plan::Int8{};
  sent = with_automatic_settings(plan).compress;
  CHECK(sent == plan::Compression{.pull = plan::Bf16{},
                                  .activations = plan::Int8{},
                                  .activation_gradients = plan::Bf16{}});
  plan.precision = "bf16";
  CHECK(with_automatic_settings(plan) == plan);
}

TEST_CASE("a grace window of fixed length begins with the quorum") {
  const auto grace = Quorum(plan::Quorum{3, 20}).grace();
  const Instant opened{milliseconds(100).ns}, quorum = opened + milliseconds(50);
  CHECK(grace.end(opened, quorum) == quorum + milliseconds(20));
}

TEST_CASE("an adaptive grace window ends three deviations after the median of recent arrivals") {
  auto grace = Quorum(plan::Quorum{.count = 3, .mad = true}).grace();
  const Instant opened{milliseconds(100).ns}, quorum = opened + milliseconds(10);
  grace.missed();
  CHECK(grace.end(opened, quorum) == std::nullopt);  // no arrival is known
  grace.restore({});
  for (const int ms : {10, 11, 12, 13, 14, 15, 16}) grace.arrived(milliseconds(ms));
  CHECK(grace.end(opened, quorum) == opened + milliseconds(4 * 16));  // too few to tell
  grace.arrived(milliseconds(500));
  // Of the values and of the deviations 4, 3, 2, 1, 0, 1, 2, 486, the larger middle one.
  CHECK(grace.end(opened, quorum) == opened + milliseconds(14 + 3 * 2));
  CHECK(grace.end(opened, opened + milliseconds(40)) == opened + milliseconds(40));
  // A few pushes that missed their rounds are later than the window; half of them make it long.
  for (int i = 0; i < 7; ++i) grace.missed();
  CHECK(grace.end(opened, quorum) == opened + milliseconds(500 + 3 * 490));
  grace.missed();
  CHECK(grace.end(opened, quorum) == opened + milliseconds(4 * 500));
  for (std::size_t i = 0; i < GraceWindow::kMostArrivals; ++i) grace.arrived(milliseconds(30));
  CHECK(grace.arrivals().size() == GraceWindow::kMostArrivals);
  CHECK(grace.end(opened, quorum) == opened + milliseconds(30));
}

TEST_CASE("make_consistency makes the policy that the plan names") {
  CHECK(make_consistency(plan::Bsp{})->name() == "bsp");
  CHECK(make_consistency(plan::Asp{})->name() == "asp");
  CHECK(make_consistency(plan::Backup{1})->name() == "backup");
  CHECK(make_consistency(plan::Backup{3})->round_size().of(8) == 5);
  CHECK(make_consistency(plan::Quorum{3})->name() == "quorum");
  const auto ssp = make_consistency(plan::Ssp{5});
  CHECK(ssp->name() == "ssp");
  CHECK(ssp->bound() == 5);
  // The largest staleness of a plan is still a bound.
  const auto widest = make_consistency(plan::Ssp{0xffffffffu});
  CHECK(widest->bound() == 0xffffffffll);
}
