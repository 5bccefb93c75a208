// stragglers: the effect of a slow worker on training under each policy.
//
// The same network learns Fashion-MNIST under bsp, backup with one spare worker, ssp with a bound
// of 1, 2, 4 and 8, adaptive, and asp: once with four equal workers, and once with worker 3 slow in
// random bursts. Prints a table and plots the test loss over time. With equal workers bounded
// staleness does not pay: waits are short, and policies that apply every push separately do more
// work than bsp, which applies one sum per round. Workers share the machine's cores; --simulate
// gives each worker its own node.
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr double kTarget = 0.85;  // test accuracy, for the column "to 85%"

struct Policy {
  std::string name;
  plan::Consistency consistency;
};

/// Seconds until an evaluation first reached the target accuracy.
std::string time_to_target(const Result& result) {
  for (const auto& evaluation : result.totals.evaluations)
    if (evaluation.accuracy >= kTarget)
      return fixed((evaluation.now - Instant{}).seconds(), 2) + " s";
  return "-";
}

std::string row(const std::string& policy, const std::string& setting, const Result& result) {
  double waiting = 0;
  double working = 0;
  for (const auto& worker : result.totals.workers) {
    waiting += worker.wait.seconds();
    working += worker.compute.seconds();
  }
  return cell(13, policy) + cell(10, setting) + cell(9, fixed(result.seconds, 2) + " s") +
         cell(11, grouped(static_cast<std::uint64_t>(result.samples_per_second))) +
         cell(9, percent(waiting / (waiting + working))) +
         cell(6, std::to_string(result.max_clock_gap)) + cell(10, percent(result.test_accuracy)) +
         cell(9, time_to_target(result)) + '\n';
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario(
      "stragglers",
      "Compare bsp, backup, ssp and asp, with and without a worker that is slow in bursts.");
  scenario
      .description(
          "Sixteen runs of a 784-512-256-10 network on Fashion-MNIST: eight policies, each with\n"
          "equal workers and with one slow worker.")
      .decides({"--staleness", "--prefetch", "--no-prefetch"})
      .decides(study::kOfPipelines)
      .decides(study::kOfCheckpoints)
      .data(fashion_mnist())
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .workers(4)
      .shards(2)
      .batch(64)
      .straggler(slow_in_bursts(3, 5, 0.25, 50))
      .evaluate_every(0.25)
      .epochs(3);
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;

  const std::vector<Policy> policies = {{"bsp", bsp()},
                                        {"backup(1)", backup(1)},
                                        {"ssp(1)", ssp(1)},
                                        {"ssp(2)", ssp(2)},
                                        {"ssp(4)", ssp(4)},
                                        {"ssp(8)", ssp(8)},
                                        {"adaptive(1,8)", adaptive(1, 8)},
                                        {"asp", asp()}};
  study::Report report(line);
  if (line.plan.stragglers.empty())
    return report.refuse(
        "no worker is slow, so both parts of the table would be equal; give --workers 4 or more, "
        "or a slow worker with --slow 1:4x");
  if (line.plan.workers < 2)
    return report.refuse("--workers: a single worker never waits; give --workers 2 or more");
  for (const auto& policy : policies) {
    Plan plan = line.plan;
    plan.consistency = policy.consistency;
    if (const auto valid = validate(plan); !valid)
      return report.refuse(policy.name + ": " + valid.error().text);
  }
  if (const auto opened = report.open(); !opened) return report.refuse(opened.error().text);
  report.print("       policy   workers     time  samples/s  waiting   gap  accuracy   to 85%\n");
  std::vector<Chart> charts;
  for (const std::string setting : {"equal", "straggler"}) {
    charts.push_back({.title = setting == "equal" ? "Equal workers" : "One worker slow in bursts",
                      .x_label = "seconds",
                      .y_label = "test loss"});
    for (const auto& policy : policies) {
      Plan plan = line.plan;
      plan.consistency = policy.consistency;
      if (setting == "equal") plan.stragglers.clear();
      RunOptions options = line.options;
      options.quiet = true;
      if (!options.folder.empty()) options.folder += "/" + policy.name + "-" + setting;
      const Result result = run(plan, options);
      if (!result.ok()) return report.failed(policy.name + ", " + setting, result);
      Series curve{.name = policy.name};
      for (const auto& evaluation : result.totals.evaluations)
        curve.points.emplace_back((evaluation.now - Instant{}).seconds(), evaluation.loss);
      charts.back().series.push_back(std::move(curve));
      report.print(row(policy.name, setting, result));
      report.draw(charts);
    }
  }
  return report.end(", and a folder for each run");
}
