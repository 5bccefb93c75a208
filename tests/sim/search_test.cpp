#include <catch2/catch.hpp>
#include <set>

#include "sim/search/search.hpp"
#include "sim/search/shrink.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using test::job_of;
using test::tiny_plan;

constexpr Address kShard0{RoleKind::shard, 0};

}  // namespace

TEST_CASE("drawn plans are valid, have faults, and depend on their seed alone") {
  const auto base = job_of(tiny_plan());
  std::set<std::size_t> kinds, policies;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Plan plan = draw_plan(*base, seed);
    const Status valid = validate(plan);
    INFO("seed " << seed << ": " << (valid ? "" : valid.error().text));
    REQUIRE(valid);
    CHECK(plan == draw_plan(*base, seed));
    CHECK_FALSE(plan == draw_plan(*base, seed + 1));
    CHECK(plan.workers >= 4);
    CHECK(plan.workers <= 16);
    REQUIRE_FALSE(plan.faults.empty());
    for (const auto& fault : plan.faults) kinds.insert(fault.kind.index());
    policies.insert(plan.consistency.index());
  }
  CHECK(kinds.size() == std::variant_size_v<plan::FaultKind>);
  CHECK(policies.size() >= 3);
}

TEST_CASE("a search over runs that are right finds nothing, whatever its threads") {
  const auto base = job_of(tiny_plan());
  const auto alone = search(*base, {.first = 100, .last = 139, .threads = 1});
  const auto together = search(*base, {.first = 100, .last = 139, .threads = 3});
  CHECK(alone.failures.empty());
  CHECK(alone.seeds == 40);
  CHECK(alone.events > 40 * 5000);
  CHECK(alone.events == together.events);
}

TEST_CASE("a run that fails is made smaller, and still fails") {
  const auto base = job_of(tiny_plan());
  Plan plan = draw_plan(*base, 7);
  plan.shards = 2;
  plan.faults.push_back({kShard0, std::int64_t{4}, 0, plan::Crash{}});
  const Trial failed = try_plan(plan, load_job);
  CHECK(failed.property == "the run ends well");
  const Plan small = shrink(plan, [](const Plan& candidate) {
    return try_plan(candidate, load_job).property == "the run ends well";
  });
  REQUIRE(small.faults.size() == 1);
  CHECK(small.faults[0] == plan.faults.back());
  CHECK(small.workers == 1);
  CHECK(small.shards == 1);
  CHECK(small.stragglers.empty());
  CHECK(try_plan(small, load_job).property == "the run ends well");
}

TEST_CASE("a search stops at the seed that fails, and keeps its plan") {
  const auto base = job_of(tiny_plan());
  // Every run with more than nine workers loses a shard.
  const MakeJob make = [](const Plan& plan) {
    Plan broken = plan;
    if (plan.workers > 9) broken.faults.push_back({kShard0, std::int64_t{4}, 0, plan::Crash{}});
    return load_job(broken);
  };
  const auto found = search(*base, {.first = 1, .last = 100, .threads = 2, .make_job = make});
  REQUIRE_FALSE(found.failures.empty());
  const Failure& failure = found.failures.front();
  CHECK(failure.drawn == draw_plan(*base, failure.seed));
  CHECK(failure.shrunk.workers == 10);
  CHECK(failure.trial.report.find("shard 0 ended") != std::string::npos);
  CHECK(found.seeds < 100);
}

}  // namespace leeway::sim
