// stragglers-and-bounds: the best staleness bound for each kind of straggler.
//
// Eight workers learn Fashion-MNIST in five worlds (equal workers, one slow in bursts, one always
// slow, a heavy tail for all, a slow network) under bsp, backup, ssp, adaptive and asp, two of them
// also with batches by speed; each with five seeds. Times are simulated with a CPU per node, so
// they do not depend on this machine; gradients are real, so a real cluster would reach the same
// accuracies. Prints a table for each world and plots the test loss over time. docs/scenarios.md
// discusses the results.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <limits>

#include "study.hpp"
#include "worlds.hpp"

using namespace leeway;
using study::cell;
using study::kWorlds;
using study::SimulatedWorld;

namespace {

// Test accuracies of the columns "to 82%" and "to 85%".
constexpr std::array<double, 2> kTargets = {0.82, 0.85};
constexpr std::int64_t kTestSamples = 2000;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kSeeds = 5;

struct Policy {
  std::string name;
  plan::Consistency consistency;
  plan::Balance balance = plan::Balance::equal;
};

const Policy kPolicies[] = {{"bsp", bsp()},
                            {"bsp, by speed", bsp(), plan::Balance::by_speed},
                            {"backup(1)", backup(1)},
                            {"ssp(1)", ssp(1)},
                            {"ssp(3)", ssp(3)},
                            {"ssp(3), by speed", ssp(3), plan::Balance::by_speed},
                            {"ssp(8)", ssp(8)},
                            {"adaptive(1,8)", adaptive(1, 8)},
                            {"asp", asp()}};

/// The figures of a run.
struct Outcome {
  std::array<double, kTargets.size()> to_target;  // seconds until first reached
  double seconds = 0;
  double waiting = 0;  // share of the workers' time
  double lag = 0;      // average age of gradients in updates
  double accuracy = 0;
  std::vector<std::pair<double, double>> losses;  // by time
};

Outcome outcome_of(const Result& result) {
  Outcome outcome{.seconds = result.seconds, .accuracy = result.test_accuracy};
  outcome.to_target.fill(kNever);
  double wait = 0;
  double work = 0;
  for (const auto& worker : result.totals.workers) {
    wait += worker.wait.seconds();
    work += worker.compute.seconds();
  }
  outcome.waiting = wait / std::max(wait + work, 1e-9);
  double pushes = 0;
  for (std::size_t lag = 0; lag < result.totals.version_lags.size(); ++lag) {
    const auto count = static_cast<double>(result.totals.version_lags[lag]);
    outcome.lag += count * static_cast<double>(lag);
    pushes += count;
  }
  outcome.lag /= std::max(pushes, 1.0);
  for (const auto& evaluation : result.totals.evaluations) {
    const double seconds = (evaluation.now - Instant{}).seconds();
    outcome.losses.emplace_back(seconds, evaluation.loss);
    for (std::size_t i = 0; i < kTargets.size(); ++i)
      if (evaluation.accuracy >= kTargets[i])
        outcome.to_target[i] = std::min(outcome.to_target[i], seconds);
  }
  return outcome;
}

struct Trial {
  Plan plan;
  std::string name;
  Outcome outcome;
};

/// Every policy with every seed; the seeds of a policy are adjacent.
std::vector<Trial> every_trial(const SimulatedWorld& world, const Plan& base) {
  std::vector<Trial> trials;
  for (const auto& policy : kPolicies)
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
      Plan plan = base;
      plan.consistency = policy.consistency;
      plan.balance = policy.balance;
      plan.seed = base.seed + i;
      world.add(plan);
      trials.push_back(
          {std::move(plan), concat(world.name, ", ", policy.name, ", seed ", base.seed + i), {}});
    }
  return trials;
}

/// Runs all trials, one per core at a time. Calls `on_end` after each, from one thread at a time.
/// Reports the first failed run and returns its exit code.
int run_all(std::span<Trial> trials, study::Report& report,
            const std::function<void(std::size_t)>& on_end) {
  return study::in_parallel(
      trials.size(), [&](std::size_t i) { return run(trials[i].plan, {.quiet = true}); },
      [&](std::size_t i, const Result& result) {
        if (!result.ok()) return report.failed(trials[i].name, result);
        trials[i].outcome = outcome_of(result);
        on_end(i);
        return 0;
      });
}

/// Minimum, median and maximum over the seeds.
struct Spread {
  Spread(std::span<const Trial> trials, const std::function<double(const Outcome&)>& number) {
    std::vector<double> all;
    for (const auto& trial : trials) all.push_back(number(trial.outcome));
    std::ranges::sort(all);
    least = all.front();
    median = all[all.size() / 2];
    largest = all.back();
  }
  double least, median, largest;
};

/// The runs of one policy.
std::span<const Trial> seeds_of(std::span<const Trial> trials, std::size_t policy) {
  return trials.subspan(policy * kSeeds, kSeeds);
}

/// A column of the times to a target: the median with its spread, marked if it is the best.
std::vector<std::string> times_to(std::size_t target, std::span<const Trial> trials) {
  const auto text = [](double seconds) { return seconds == kNever ? "never" : fixed(seconds, 2); };
  std::vector<Spread> spreads;
  double best = kNever;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    spreads.emplace_back(seeds_of(trials, i),
                         [&](const Outcome& outcome) { return outcome.to_target[target]; });
    best = std::min(best, spreads.back().median);
  }
  std::vector<std::string> column;
  for (const auto& [least, median, largest] : spreads)
    column.push_back(concat(cell(7, text(median)),
                            best != kNever && text(median) == text(best) ? '*' : ' ',
                            cell(17, concat('(', text(least), " to ", text(largest), ')'))));
  return column;
}

std::string table_of(const SimulatedWorld& world, std::span<const Trial> trials) {
  std::string table = concat('\n', world.name, "\n\n", cell(17, "policy"));
  std::vector<std::vector<std::string>> times;
  for (std::size_t i = 0; i < kTargets.size(); ++i) {
    times.push_back(times_to(i, trials));
    table += cell(25, concat("to ", fixed(100 * kTargets[i], 0), "%, s"));
  }
  table += "     all, s  waiting   lag  accuracy\n";
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    const auto median = [&](double Outcome::*number) {
      return Spread(seeds_of(trials, i), [&](const Outcome& outcome) { return outcome.*number; })
          .median;
    };
    table += cell(17, kPolicies[i].name);
    for (const auto& column : times) table += column[i];
    table += concat(cell(11, fixed(median(&Outcome::seconds), 2)),
                    cell(9, percent(median(&Outcome::waiting))),
                    cell(6, fixed(median(&Outcome::lag), 1)),
                    cell(10, percent(median(&Outcome::accuracy))), '\n');
  }
  return table;
}

/// The curve of each policy's median seed, by the time to the first target.
Chart chart_of(const SimulatedWorld& world, std::span<const Trial> trials) {
  Chart chart{.title = world.name, .x_label = "virtual seconds", .y_label = "test loss"};
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    std::vector<const Outcome*> outcomes;
    for (const auto& trial : seeds_of(trials, i)) outcomes.push_back(&trial.outcome);
    std::ranges::sort(outcomes, {}, [](const Outcome* outcome) {
      return std::pair(outcome->to_target.front(), outcome->seconds);
    });
    chart.series.push_back({.name = kPolicies[i].name,
                            .points = outcomes[kSeeds / 2]->losses,
                            .dashed = kPolicies[i].balance == plan::Balance::by_speed});
  }
  return chart;
}

class Study {
 public:
  explicit Study(const Plan& base) {
    for (const auto& world : kWorlds)
      for (auto& trial : every_trial(world, base)) trials_.push_back(std::move(trial));
  }
  /// Plans of one seed are enough: validity does not depend on the seed.
  std::vector<study::Named> plans_to_check() const {
    std::vector<study::Named> plans;
    for (std::size_t i = 0; i < trials_.size(); i += kSeeds)
      plans.push_back({trials_[i].name, trials_[i].plan});
    return plans;
  }
  /// Prints and plots each world when its last run has ended. Returns the exit code.
  int run(study::Report& report, bool quiet) {
    const bool terminal = !quiet && isatty(STDERR_FILENO) == 1;
    std::size_t done = 0;
    std::vector<std::size_t> missing(std::size(kWorlds), kRunsPerWorld);
    std::vector<Chart> charts;
    const int code = run_all(trials_, report, [&](std::size_t i) {
      --missing[i / kRunsPerWorld];
      if (terminal) std::cerr << "\r\x1b[K" << std::flush;
      for (std::size_t shown;
           (shown = charts.size()) < std::size(kWorlds) && missing[shown] == 0;) {
        report.print(table_of(kWorlds[shown], trials_of(shown)));
        charts.push_back(chart_of(kWorlds[shown], trials_of(shown)));
        report.draw(charts, {.chart_height = 420});
      }
      if (terminal && ++done < trials_.size())
        std::cerr << done << " of " << trials_.size() << " runs" << std::flush;
    });
    return code == 0 ? report.end() : code;
  }

 private:
  static constexpr std::size_t kRunsPerWorld = std::size(kPolicies) * kSeeds;
  std::span<const Trial> trials_of(std::size_t world) const {
    return std::span(trials_).subspan(world * kRunsPerWorld, kRunsPerWorld);
  }

  std::vector<Trial> trials_;  // world by world
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("stragglers-and-bounds", "Compare staleness bounds in five simulated worlds.");
  study::in_worlds(scenario)
      .description(
          "225 runs of a 784-64-10 network on Fashion-MNIST, tested on 2,000 images: nine\n"
          "policies in five worlds, each with five seeds starting at --seed. All times are\n"
          "virtual. A worker's step computes for 1.9 ms and uses the network for about 1 ms, on\n"
          "the slow network for about 8 ms. Each number is the median of the seeds, with their\n"
          "minimum and maximum in brackets; * marks the best. --slow, --fault and --world apply\n"
          "to every world in addition. --epochs 0.2 gives a quick look.")
      .decides({"--staleness", "--balance", "--prefetch", "--no-prefetch"})
      .optimizer(sgd(0.2));
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  if (line.plan.workers < 2)
    return report.refuse("--workers: a single worker never waits; give --workers 2 or more");
  auto status = study::share_data(line.plan, kTestSamples);
  if (!status) return report.refuse(status.error().text);
  Study study(line.plan);
  status = study::check(study.plans_to_check());
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  return study.run(report, line.options.quiet);
}
