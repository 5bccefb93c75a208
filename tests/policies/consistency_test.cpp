#include "policies/consistency/consistency.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "policies/consistency/asp.hpp"
#include "policies/consistency/backup.hpp"
#include "policies/consistency/bsp.hpp"
#include "policies/consistency/ssp.hpp"

using namespace leeway;

namespace {

bool starts(std::int64_t iteration, std::int64_t min_clock, std::int64_t clock,
            std::int64_t own_clock, std::int64_t bound) {
  return may_start(Iteration(iteration), Clock(min_clock), Clock(clock), Clock(own_clock), bound);
}

/// Workers' clocks alone; who may start is asked of the policy.
struct Race {
  const Consistency& policy;
  std::vector<std::int64_t> clocks;

  std::int64_t min_clock() const { return *std::min_element(clocks.begin(), clocks.end()); }
  std::int64_t max_clock() const { return *std::max_element(clocks.begin(), clocks.end()); }
  /// Whether the worker's pull for its next iteration, with all its pushes sent, is answered.
  bool may_go(std::size_t worker) const {
    const std::int64_t own = clocks[worker];
    return starts(own, min_clock(), own, own, policy.bound(Iteration(own)));
  }
};

std::int64_t any_count() {
  return *rc::gen::inRange<std::int64_t>(0, 1000);
}
std::int64_t any_bound() {
  return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 20), rc::gen::just(kUnbounded));
}

}  // namespace

TEST_CASE("the worked timeline of the protocol: one unit of leeway, A fast, B slow") {
  const Ssp policy(1);
  Race race{policy, {0, 0}};
  const std::size_t a = 0, b = 1;
  CHECK(race.may_go(a));
  CHECK(race.may_go(b));
  race.clocks[a] = 1;  // A pushes 0
  CHECK(race.may_go(a));
  race.clocks[a] = 2;  // A pushes 1
  CHECK_FALSE(race.may_go(a));
  race.clocks[b] = 1;  // B pushes 0
  CHECK(race.may_go(a));
}

TEST_CASE("the staleness rule, case by case") {
  struct Case {
    std::int64_t iteration, min_clock, clock, own_clock, bound;
    bool may;
  };
  const auto c = GENERATE(values<Case>({
      {0, 0, 0, 0, 0, true},   // the very first pull
      {1, 0, 1, 1, 0, false},  // the barrier: the others have not finished 0
      {1, 1, 1, 1, 0, true},   //
      {3, 0, 3, 3, 3, true},   // exactly the bound ahead
      {4, 0, 4, 4, 3, false},  // one too far
      {4, 1, 4, 4, 3, true},   //
      {1, 0, 0, 0, 1, true},   // a prefetch for 1 while 0 is computed spends the leeway
      {2, 0, 1, 1, 1, false},  //
      {5, 7, 7, 5, 0, true},   // behind everybody, after an admission: never waits
      {2, 2, 1, 2, 3, false},  // the pull has overtaken the worker's own push
      {2, 2, 2, 2, 3, true},   //
      {1000, 0, 1000, 1000, kUnbounded, true},
      {1000, 0, 999, 1000, kUnbounded, false},  // own pushes are waited for under any bound
  }));
  CAPTURE(c.iteration, c.min_clock, c.clock, c.own_clock, c.bound);
  CHECK(starts(c.iteration, c.min_clock, c.clock, c.own_clock, c.bound) == c.may);
}

TEST_CASE("the staleness rule has the shape that the protocol relies on") {
  rc::prop("a pull that may start still may when min_clock has advanced", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_bound(), more = any_count();
    if (starts(iteration, least, clock, own, bound))
      RC_ASSERT(starts(iteration, least + more, clock, own, bound));
  });
  rc::prop("what may start a later iteration may start an earlier one", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_bound(), less = any_count();
    if (starts(iteration, least, clock, own, bound))
      RC_ASSERT(starts(iteration - less, least, clock, own, bound));
  });
  rc::prop("a larger bound and a larger own clock at the shard never hurt", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    const auto own = any_count(), bound = any_count(), more = any_count();
    if (starts(iteration, least, clock, own, bound)) {
      RC_ASSERT(starts(iteration, least, clock, own, bound + more));
      RC_ASSERT(starts(iteration, least, clock + more, own, bound));
      RC_ASSERT(starts(iteration, least, clock, own, kUnbounded));
    }
  });
  rc::prop("it depends on the distance to min_clock alone, and is sharp", [] {
    const auto least = any_count(), bound = any_count(), clock = any_count();
    RC_ASSERT(starts(least + bound, least, clock, clock, bound));
    RC_ASSERT(!starts(least + bound + 1, least, clock, clock, bound));
  });
  rc::prop("pushes on their way hold a pull up under any bound", [] {
    const auto own = any_count() + 1, missing = *rc::gen::inRange<std::int64_t>(1, own + 1);
    RC_ASSERT(!starts(own, own, own - missing, own, any_bound()));
    RC_ASSERT(starts(own, own, own, own, any_bound()));
  });
  rc::prop("without a bound nobody waits for anybody", [] {
    const auto clock = any_count();
    RC_ASSERT(starts(any_count() * any_count(), 0, clock, clock, kUnbounded));
  });
}

TEST_CASE(
    "a bound of 0 is the barrier: an iteration starts when all have finished the one before") {
  rc::prop("s = 0", [] {
    const auto iteration = any_count(), least = any_count(), clock = any_count();
    RC_ASSERT(starts(iteration, least, clock, clock, 0) == (least >= iteration));
  });
}

TEST_CASE("under a bound s clocks differ by s + 1 at most, and somebody may always go on") {
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
      if (race.may_go(worker)) ++race.clocks[worker];
      widest = std::max(widest, race.max_clock() - race.min_clock());
      RC_ASSERT(widest <= bound + 1);
      const auto slowest = static_cast<std::size_t>(
          std::min_element(race.clocks.begin(), race.clocks.end()) - race.clocks.begin());
      RC_ASSERT(race.may_go(slowest));
    }
  });
}

TEST_CASE("each policy has its bound at every iteration, and only bsp goes by rounds") {
  for (const std::int64_t iteration : {0, 1, 1000}) {
    CHECK(Bsp().bound(Iteration(iteration)) == 0);
    CHECK(Ssp(0).bound(Iteration(iteration)) == 0);
    CHECK(Ssp(7).bound(Iteration(iteration)) == 7);
    CHECK(Asp().bound(Iteration(iteration)) == kUnbounded);
  }
  CHECK(Bsp().by_rounds());
  CHECK_FALSE(Ssp(0).by_rounds());
  CHECK_FALSE(Asp().by_rounds());
}

TEST_CASE("backup is a barrier of all live workers but the spare ones, and of one at least") {
  const Backup backup(2);
  CHECK(backup.by_rounds());
  CHECK(backup.drops_stragglers());
  CHECK(backup.bound(Iteration(5)) == 0);
  CHECK(backup.contributors(6) == 4);
  CHECK(backup.contributors(3) == 1);
  CHECK(backup.contributors(2) == 1);
  CHECK(backup.contributors(1) == 1);
  CHECK(Backup(0xffffffffu).contributors(4096) == 1);
  // A barrier waits for all of them, and none is late.
  CHECK(Bsp().contributors(6) == 6);
  CHECK_FALSE(Bsp().drops_stragglers());
}

TEST_CASE("the plan's policy is the one that is made") {
  CHECK(make_consistency(plan::Bsp{})->name() == "bsp");
  CHECK(make_consistency(plan::Asp{})->name() == "asp");
  CHECK(make_consistency(plan::Backup{1})->name() == "backup");
  CHECK(make_consistency(plan::Backup{3})->contributors(5) == 2);
  const auto ssp = make_consistency(plan::Ssp{5});
  CHECK(ssp->name() == "ssp");
  CHECK(ssp->bound(Iteration(0)) == 5);
  // The largest staleness that a plan can hold is a bound still, not the absence of one.
  const auto widest = make_consistency(plan::Ssp{0xffffffffu});
  CHECK(widest->bound(Iteration(0)) == 0xffffffffll);
}
