// The crash atlas: a process is lost after each of its messages, and nothing else is.
#include "sim/search/crash_atlas.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using namespace leeway::test;

CrashAtlas atlas_of(const Plan& plan, std::uint64_t messages) {
  auto atlas = CrashAtlas::make(
      plan,
      [](const Plan& drawn, JobOptions) -> Expected<std::shared_ptr<const Job>> {
        return job_of(drawn);
      },
      messages);
  REQUIRE((atlas ? "" : atlas.error().text) == "");
  return *atlas;
}

Plan bsp_plan() {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  return plan;
}

Plan piped_plan() {
  Plan plan = bsp_plan();
  plan.workers = 4;
  plan.pipeline.stages = 2;
  plan.micro_batches = 2;
  return plan;
}

}  // namespace

TEST_CASE("each process may be lost after each message that it sends") {
  for (const Plan& plan : {bsp_plan(), piped_plan()}) {
    const CrashAtlas atlas = atlas_of(plan, 200);
    CHECK(atlas.is_exact());
    CHECK(atlas.messages() >= 200);
    std::set<Victim> lost;
    for (const KillPoint& point : atlas.points()) {
      const AtlasRun run = atlas.lose(point);
      INFO(point.actor << ", message " << point.sends << ": " << run.trial.report);
      REQUIRE(run.trial.property == "");
      REQUIRE(run.was_lost);
      lost.insert(run.lost.first);
      if (run.lost.first == Victim::primary)
        CHECK(run.standstill <= milliseconds(500));  // the detection takes 200 ms
    }
    CHECK(lost.size() == 3);
  }
}

TEST_CASE("a second process may be lost while a run recovers") {
  const CrashAtlas atlas = atlas_of(bsp_plan(), 200);
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const AtlasRun run = atlas.lose_two(seed);
    INFO("seed " << seed << ": " << run.trial.report);
    REQUIRE(run.trial.property == "");
    if (run.second_was_lost) ++lost;
  }
  CHECK(lost > 100);
}

TEST_CASE("each combination of two losses that is possible can be aimed at") {
  const CrashAtlas atlas = atlas_of(bsp_plan(), 200);
  std::set<TwoLosses> possible;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) possible.merge(atlas.lose_two(seed).possible);
  CHECK(possible.size() > 10);
  for (const TwoLosses& wanted : possible) {
    AtlasRun run;
    for (std::uint64_t seed = 1; seed <= 500 && !run.second_was_lost; ++seed) {
      run = atlas.lose_two(seed, wanted);
      REQUIRE(run.trial.property == "");
    }
    INFO(name_of(wanted.first) << ", " << name_of(wanted.second) << ", " << wanted.last_message);
    REQUIRE(run.second_was_lost);
    CHECK(run.lost == wanted);
  }
}

TEST_CASE("an atlas needs a worker that may be lost") {
  Plan plan = bsp_plan();
  plan.workers = 1;
  const auto atlas = CrashAtlas::make(plan, load_job);
  REQUIRE_FALSE(atlas);
  CHECK_THAT(atlas.error().text, Catch::Contains("give --workers 2 or more"));
}

}  // namespace leeway::sim
