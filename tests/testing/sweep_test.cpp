// Sweeps over seeds: the first failing seed, how to repeat it, and the minimised plan.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/testing/small.hpp"

using namespace leeway;
using test::small;
namespace fs = std::filesystem;

namespace {

/// A folder that is removed at the end of its scope.
struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() /
                  ("leeway-sweep-" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

/// Sets an environment variable in its scope.
struct Environment {
  const char* name;
  Environment(const char* variable, const char* value) : name(variable) {
    setenv(variable, value, 1);
  }
  ~Environment() { unsetenv(name); }
};

/// Fails for seeds from 4 on whose worker 1 crashes.
Verdict survives(const SimulatedRun& run) {
  const bool lost = events(run).of<event::Evicted>().any() && run.seed >= 4;
  return ended_well(run) && Verdict(!lost, "worker 1 was lost");
}

}  // namespace

TEST_CASE("a sweep holds if its property holds for every seed") {
  int runs = 0;
  const Verdict verdict =
      sweep(small(), {.first = 2, .last = 5}, [&](const SimulatedRun& run) -> Verdict {
        CHECK(run.seed == static_cast<std::uint64_t>(2 + runs++));
        return trained_exactly_once(run) && max_clock_gap(run) <= 3;
      });
  CHECK(verdict);
  CHECK(verdict.text() == "holds for the seeds 2 to 5");
  CHECK(runs == 4);
  CHECK_FALSE(sweep(small(), {.first = 2, .last = 1}, survives));
}

TEST_CASE("a failing sweep names the seed, the command to repeat it and a smaller plan") {
  const TemporaryFolder folder;
  Scenario scenario = small();
  scenario.straggler(slow(0, 2)).fault(crashes(worker(1), at_iteration(5)));
  const Verdict verdict =
      sweep(scenario, {.first = 1, .last = 9, .folder = folder.path.string()}, survives);
  CHECK_FALSE(verdict);
  INFO(verdict.text());
  const auto has = [&](const std::string& part) {
    return verdict.text().find(part) != std::string::npos;
  };
  CHECK(has("seed 4 of 1 to 9: worker 1 was lost"));
  CHECK(has("repeat it: LEEWAY_SEED=4 "));
  CHECK(has("testing_test"));
  CHECK(has("(workers: 2, shards: 1, stragglers: 0, faults: 1)"));
  const std::string file = (folder.path / "small-seed-4.json").string();
  CHECK(has("leeway run " + file));
  const auto plan = plan_from_file(file);
  REQUIRE(plan);
  CHECK(plan->seed == 4);
  CHECK(plan->faults == scenario.plan().faults);
  CHECK_FALSE(survives(simulate(*plan)));
}

TEST_CASE("a smaller plan fails in the same way, and not for another reason") {
  const TemporaryFolder folder;
  // Without the straggler the run would not be strict any more, but it would hold.
  Scenario scenario = small();
  scenario.straggler(slow(0, 1));
  const Verdict verdict = sweep(scenario, {.last = 1, .folder = folder.path.string()}, ended_well);
  CHECK_FALSE(verdict);
  INFO(verdict.text());
  CHECK(verdict.text().find("stragglers: 1, faults: 0") != std::string::npos);
}

TEST_CASE("LEEWAY_SEED restricts a sweep to one seed") {
  const Environment seed("LEEWAY_SEED", "7");
  int runs = 0;
  CHECK(sweep(small(), {.first = 1, .last = 3}, [&](const SimulatedRun& run) {
    ++runs;
    return Verdict(run.seed == 7);
  }));
  CHECK(runs == 1);
  const Environment wrong("LEEWAY_SEED", "x");
  const Verdict refused = sweep(small(), {}, survives);
  CHECK_FALSE(refused);
  CHECK(refused.text() == "LEEWAY_SEED: \"x\" is not a seed; give a number");
}

TEST_CASE("a sweep may draw the plan of each seed") {
  std::vector<std::uint32_t> drawn;
  const auto draw = [&](Plan& plan, Rng& random) {
    plan.workers = 2 + static_cast<std::uint32_t>(random.below(8));
    drawn.push_back(plan.workers);
  };
  const auto has_drawn = [&](const SimulatedRun& run) -> Verdict {
    return run.totals.workers.size() == drawn.back() && run.ok();
  };
  CHECK(sweep(small(), {.last = 6, .draw = draw}, has_drawn));
  const std::vector<std::uint32_t> first = drawn;
  drawn.clear();
  CHECK(sweep(small(), {.last = 6, .draw = draw}, has_drawn));
  CHECK(drawn == first);
  CHECK(std::set<std::uint32_t>(first.begin(), first.end()).size() > 1);
}
