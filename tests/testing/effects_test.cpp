// Effects of stragglers and faults in results: which had none, and what an ended worker counted.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/testing/small.hpp"

using namespace leeway;
using test::small;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// On threads: iterations of about a millisecond, by a fixed delay.
Plan threaded() {
  Scenario scenario = small();
  scenario.straggler(delay(all_workers, std::chrono::milliseconds(1)));
  scenario.plan().simulated.reset();
  return scenario.plan();
}

/// The end of worker 1 in the report.
std::string end_of(const Plan& plan) {
  const Result result = run(plan, {.quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  return result.totals.workers[1].end;
}

}  // namespace

TEST_CASE("a straggler reports the time that it has added") {
  const SimulatedRun run = simulate(small().straggler(slow(3, 4)).straggler(slow_by(1, {3, 1})));
  REQUIRE(run.ok());
  REQUIRE(run.straggler_seconds.size() == 2);
  const auto& slow3 = run.totals.workers[3];
  // Without noise and randomness, three quarters of the time are the straggler's.
  CHECK(run.straggler_seconds[0] == Approx(slow3.compute.seconds() * 3 / 4).epsilon(0.02));
  CHECK(run.totals.slowed_iterations[0] == slow3.iterations);
  const auto iterations = run.totals.workers[1].iterations;
  CHECK(run.totals.slowed_iterations[1] == (iterations + 1) / 2);
  CHECK(run.warnings.empty());
}

TEST_CASE("a straggler from half of the run on slows the second half of the iterations") {
  const SimulatedRun run = simulate(small().straggler(from_share(0.5, slow(3, 4))));
  REQUIRE(run.ok());
  const auto& slow3 = run.totals.workers[3];  // 40 iterations, if all train equally many samples
  CHECK(run.totals.slowed_iterations[0] == slow3.iterations - 20);
  const SimulatedRun late = simulate(small().straggler(from_iteration(30, slow(3, 4))));
  CHECK(late.totals.slowed_iterations[0] == late.totals.workers[3].iterations - 30);
}

TEST_CASE("a function of the program slows its worker, the same in each run") {
  register_straggler("third", [](std::int64_t iteration, double now, Rng& random) {
    return iteration % 3 == 0 && now >= 0 ? 2 + random.uniform() : 1.0;
  });
  const Scenario scenario = small().straggler(slow_by(1, "third"));
  const SimulatedRun run = simulate(scenario);
  REQUIRE(run.ok());
  CHECK(run.totals.slowed_iterations[0] == (run.totals.workers[1].iterations + 2) / 3);
  CHECK(simulate(scenario).protocol_hash == run.protocol_hash);
  CHECK(simulate(scenario, {.seed = 2}).straggler_seconds != run.straggler_seconds);
  CHECK(contains(simulate(small().straggler(slow_by(1, "thrid"))).error,
                 "is not registered; did you mean \"third\"?"));
}

TEST_CASE("on threads, a straggler reports the time that it has added") {
  const Result result = run(threaded(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.totals.slowed_iterations[0] == result.iterations);
  CHECK(result.straggler_seconds[0] ==
        Approx(static_cast<double>(result.iterations) * 1e-3).epsilon(1e-6));
}

TEST_CASE("a straggler that cannot matter is reported, and fails a strict run") {
  // Computation takes nanoseconds, messages take microseconds.
  const plan::World fast{.speed = 1e6, .noise = 0, .jitter = 0};
  const Scenario scenario = small().straggler(slow(3, 4)).simulated(fast);
  const SimulatedRun lenient = simulate(scenario, {.strict = false});
  CHECK(lenient.ok());
  REQUIRE(lenient.warnings.size() == 1);
  CHECK(contains(lenient.warnings[0], "stragglers[0] (worker 3) cannot matter: it added "));
  CHECK(lenient.seconds == Approx(simulate(small().simulated(fast)).seconds).epsilon(0.01));
  CHECK_FALSE(all_had_effect(lenient));
  const SimulatedRun strict = simulate(scenario);
  CHECK_FALSE(strict.ok());
  CHECK(contains(strict.error, "strict: stragglers[0] (worker 3) cannot matter"));
  CHECK(strict.protocol_hash == lenient.protocol_hash);
}

TEST_CASE("a program is strict by its scenario or by a flag") {
  const auto strict = [](const Scenario& scenario, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"small", "--no-out"});
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    const CommandLine line = parse(scenario, static_cast<int>(argv.size()), argv.data());
    CHECK_FALSE(line.exit_code);
    return line.options.strict;
  };
  CHECK_FALSE(strict(small(), {}));
  CHECK(strict(small(), {"--strict"}));
  CHECK(strict(small().strict(), {}));
}

TEST_CASE("a straggler that never slows is reported") {
  const SimulatedRun run =
      simulate(small().straggler(from_iteration(5000, slow(2, 4))), {.strict = false});
  REQUIRE(run.warnings.size() == 1);
  CHECK(contains(run.warnings[0], "stragglers[0] (worker 2) slowed none of "));
  CHECK(run.straggler_seconds == std::vector<double>{0});
}

TEST_CASE("a fault that never began is reported, and fails a strict run") {
  Scenario scenario = small();
  scenario.fault(freezes(worker(1), at_iteration(3), 0.001))
      .fault(crashes(worker(2), at_iteration(5000)))
      .fault(crashes(worker(3), at_seconds(100)));
  for (const bool simulated : {true, false}) {
    INFO("simulated: " << simulated);
    Plan plan = simulated ? scenario.plan() : threaded();
    plan.faults = scenario.plan().faults;
    const Result result = run(plan, {.quiet = true});
    REQUIRE(result.ok());
    CHECK(result.faults_fired == std::vector<bool>{true, false, false});
    REQUIRE(result.warnings.size() == 2);
    CHECK(contains(result.warnings[0],
                   "faults[1] (worker 2) did not begin: it waits for iteration 5000"));
    CHECK(contains(result.warnings[1],
                   "faults[2] (worker 3) did not begin: it waits for second 100"));
    CHECK(run(plan, {.quiet = true, .strict = true}).exit_code == 1);
  }
}

TEST_CASE("each kind of fault of a worker reports that it began, on threads and in simulation") {
  const std::vector<plan::Fault> faults = {fault(worker(1), at_iteration(3), plan::Throws{}),
                                           fault(worker(1), at_iteration(3), plan::Killed{}),
                                           crashes(worker(1), at_iteration(3)),
                                           crashes(worker(1), at_iteration(3), 0.001),
                                           joins(worker(1), 0.002),
                                           leaves(worker(1), at_iteration(3)),
                                           freezes(worker(1), at_iteration(3), 0.001)};
  for (const auto& one : faults) {
    for (const bool simulated : {true, false}) {
      INFO("kind " << one.kind.index() << ", simulated: " << simulated);
      Plan plan = simulated ? small().plan() : threaded();
      plan.faults = {one};
      const Result result = run(plan, {.quiet = true, .strict = true});
      INFO(result.error);
      CHECK(result.ok());
      CHECK(result.faults_fired == std::vector<bool>{true});
    }
  }
}

TEST_CASE("a fault of a worker that has ended before does not count") {
  Scenario scenario = small();
  scenario.fault(crashes(worker(1), at_iteration(3))).fault(crashes(worker(1), at_seconds(0.05)));
  const SimulatedRun run = simulate(scenario, {.strict = false});
  REQUIRE(run.ok());
  REQUIRE(run.seconds > 0.05);
  CHECK(run.faults_fired == std::vector<bool>{true, false});
}

TEST_CASE("the program prints ineffective faults, and result.json has them") {
  const fs::path folder =
      fs::temp_directory_path() / ("leeway-effects-" + std::to_string(getpid()));
  std::string printed;
  const Plan plan = small().fault(crashes(worker(2), at_iteration(5000))).plan();
  const Result result = run(plan, {.folder = folder.string(),
                                   .print = [&](const std::string& text) { printed += text; }});
  REQUIRE(result.ok());
  CHECK(contains(printed, "\nWithout effect\n  faults[0] (worker 2) did not begin"));
  std::ifstream file(folder / "result.json");
  const auto json = nlohmann::json::parse(file);
  CHECK(json["faults_fired"] == nlohmann::json::array({false}));
  CHECK(json["straggler_seconds"] == nlohmann::json::array());
  CHECK(json["warnings"].size() == 1);
  fs::remove_all(folder);
}

TEST_CASE("a worker that dies for good keeps its counts") {
  for (const bool simulated : {true, false}) {
    INFO("simulated: " << simulated);
    Plan plan = simulated ? small().plan() : threaded();
    plan.faults = {fault(worker(1), at_iteration(7), plan::Killed{})};
    const Result result = run(plan, {.quiet = true});
    REQUIRE(result.ok());
    const auto& dead = result.totals.workers[1];
    CHECK(dead.iterations == 7);
    CHECK(dead.samples == 7 * 8);
    CHECK(dead.compute > Duration{});
    std::uint64_t iterations = 0;
    for (const auto& row : result.totals.workers) iterations += row.iterations;
    CHECK(result.iterations == iterations);
  }
}

TEST_CASE("a refused run has tables of full length") {
  Plan plan = small().straggler(slow(3, 4)).fault(crashes(worker(1), at_seconds(1))).plan();
  plan.optimizer.learning_rate = -1;
  const Result refused = run(plan, {.quiet = true});
  CHECK_FALSE(refused.ran);
  CHECK(refused.totals.workers.size() == 4);
  CHECK(refused.totals.version_lags.size() == 64);
  CHECK(refused.straggler_seconds == std::vector<double>{0});
  CHECK(refused.faults_fired == std::vector<bool>{false});
  CHECK(refused.plan.name == "small");
  plan.workers = 4'000'000'000;
  CHECK(run(plan, {.quiet = true}).totals.workers.size() == 65536);
}

TEST_CASE("an exception of on_event stops the run, and leaves run() unchanged") {
  struct Mine {
    int number;
  };
  for (const bool simulated : {true, false}) {
    INFO("simulated: " << simulated);
    Plan plan = simulated ? small().plan() : threaded();
    plan.stop.epochs = 1000;
    plan.simulated ? void(plan.simulated->cost_only = true) : void();
    std::atomic<int> calls{0};
    RunOptions options{.quiet = true};
    options.on_event = [&](Address, Instant, const Event&) {
      if (++calls >= 50) throw Mine{42};
    };
    int caught = 0;
    try {
      run(plan, options);
    } catch (const Mine& mine) {
      caught = mine.number;
    }
    CHECK(caught == 42);
    CHECK(calls < 10'000);  // of more than a million events
    CHECK(run(simulated ? small().plan() : threaded(), {.quiet = true}).ok());
  }
}

TEST_CASE("the same fault has the same end text on threads and in simulation") {
  const std::vector<plan::Fault> faults = {
      fault(worker(1), at_iteration(3), plan::Throws{}),
      fault(worker(1), at_iteration(3), plan::Killed{}), crashes(worker(1), at_iteration(3)),
      crashes(worker(1), at_iteration(3), 0.001), leaves(worker(1), at_iteration(3))};
  for (const auto& one : faults) {
    INFO("kind " << one.kind.index());
    Plan plan = small().plan();
    plan.faults = {one};
    const std::string in_simulation = end_of(plan);
    plan = threaded();
    plan.faults = {one};
    CHECK(end_of(plan) == in_simulation);
  }
}
