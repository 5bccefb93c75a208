// async-pipelines: is a pipeline that is never emptied worth its old gradients?
//
// By 1f1b the pipeline runs empty at each update, and stages idle. Weight stashing (PipeDream) and
// 2bw go on without a pause, and pay with gradients of weights that are some updates old. Which of
// the two learns faster depends on how many micro-batches an update has: with few the bubble is
// large, and so is the gain; with many there is little to gain. And it depends on the learning
// rate: old gradients bear a smaller one. The program trains the same network by four schedules at
// two rates, with few and with many micro-batches, and tells when each was first seen at a test
// loss, in virtual seconds.
//
// All is simulated, with real gradients. Other seeds and other targets give other winners: look at
// the curves (--out DIR) before you believe a row.
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/monitoring/picture.hpp>
#include <leeway/runtime/scenario.hpp>

#include <cmath>
#include <fstream>
#include <iostream>

using namespace leeway;

namespace {

constexpr const char* kSchedules[] = {"1f1b", "zero_bubble_h1", "weight_stashing", "2bw"};
constexpr double kRates[] = {0.02, 0.1};
constexpr std::uint32_t kMicroBatches[] = {3, 12};
constexpr double kTargets[] = {0.7, 0.5, 0.4};  // test loss

std::string cell(std::size_t width, const std::string& text) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

std::string seconds_to(double target, const Result& result) {
  for (const auto& evaluation : result.totals.evaluations)
    if (evaluation.loss <= target) return fixed((evaluation.now - Instant{}).seconds(), 2);
  return "never";
}

/// Updates between the weights of a gradient and those that it was applied to, on average.
double mean_lag(const Result& result) {
  double lag = 0, pushes = 0;
  for (std::size_t i = 0; i < result.totals.version_lags.size(); ++i) {
    lag += static_cast<double>(result.totals.version_lags[i] * i);
    pushes += static_cast<double>(result.totals.version_lags[i]);
  }
  return lag / std::max(pushes, 1.0);
}

std::string row(const std::string& schedule, const Result& result) {
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double idle =
      1 - busy / (result.seconds * static_cast<double>(result.totals.workers.size()));
  std::string text = cell(17, schedule) + cell(9, fixed(result.seconds, 2)) +
                     cell(8, percent(idle)) + cell(6, fixed(mean_lag(result), 1));
  for (const double target : kTargets) text += cell(10, seconds_to(target, result));
  return text + cell(11, fixed(result.test_loss, 3)) + cell(10, percent(result.test_accuracy)) +
         '\n';
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("async-pipelines",
                    "Compare pipelines that are never emptied with those that are.");
  scenario
      .description(
          "Sixteen runs of a network of eight layers on Fashion-MNIST, cut into four stages, in "
          "virtual time. Each\n"
          "micro-batch has 16 samples, so an update of three has 48, and one of twelve has 192. A "
          "run that does not\n"
          "learn, or whose loss is not finite, is told as such: at the larger rate that may happen "
          "to old gradients.\n"
          "--schedule, --micro-batches, --batch and --lr have no effect.")
      .data(fashion_mnist())
      .model(mlp({128, 128, 128, 128, 128, 128, 128}, 10))
      .loss(softmax_cross_entropy())
      .optimizer(momentum(kRates[0], 0.9))
      .stages(4)
      .consistency(ssp(4))
      .shards(2)
      .epochs(1)
      .evaluate_every(0.05)
      .simulated({.speed = 5});
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;

  std::string table;
  std::vector<Chart> charts;
  const auto tell = [&](const std::string& text) {
    table += text;
    if (!line.options.quiet) std::cout << text << std::flush;
  };
  for (const std::uint32_t micro_batches : kMicroBatches)
    for (const double rate : kRates) {
      const std::string title =
          concat(micro_batches, " micro-batches an update, learning rate ", rate);
      tell(concat('\n', title, "\n\n", cell(17, "schedule"), cell(9, "seconds"), cell(8, "idle"),
                  cell(6, "lag")));
      for (const double target : kTargets) tell(cell(10, concat("to ", fixed(target, 1))));
      tell(cell(11, "test loss") + cell(10, "accuracy") + '\n');
      Chart chart{.title = title, .x_label = "virtual seconds", .y_label = "test loss"};
      chart.y_range = {0, 2.5};
      for (const std::string schedule : kSchedules) {
        Plan plan = line.plan;
        plan.optimizer.learning_rate = rate;
        plan.micro_batches = micro_batches;
        plan.batch = 16 * micro_batches;
        plan.pipeline.schedule = schedule;
        const Result result = run(plan, {.quiet = true});
        if (result.exit_code == 130 || !result.ran) {
          std::cerr << "async-pipelines: " << (result.ran ? "interrupted" : result.error) << '\n';
          return result.exit_code;
        }
        // A loss that is not finite ends a run: that is an answer, too.
        tell(result.ok() ? row(schedule, result)
                         : concat(cell(17, schedule), "   ", result.error, '\n'));
        Series curve{.name = schedule};
        for (const auto& evaluation : result.totals.evaluations)
          curve.points.emplace_back((evaluation.now - Instant{}).seconds(), evaluation.loss);
        chart.series.push_back(std::move(curve));
      }
      charts.push_back(std::move(chart));
    }
  if (line.options.folder.empty()) return 0;
  std::ofstream(line.options.folder + "/table.txt") << table;
  std::ofstream(line.options.folder + "/loss.svg") << svg(charts);
  std::cout << "\nKept in " << line.options.folder << ": table.txt, loss.svg\n";
  return 0;
}
