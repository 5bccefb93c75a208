// straggling-stage: two pipelines of three stages over the same weights, and one stage that is
// slow.
//
// A pipeline goes at the pace of its slowest stage: nothing that a schedule does can help there.
// What the other pipeline does is a matter of the bound. Under bsp it waits at every update. Under
// ssp(3) it runs three updates ahead, and then it waits as well, for the slow stage is slow for
// ever. What helps is a smaller share of the samples for the slow pipeline: --balance speed. Each
// stage waits at the shards for its peer in the other pipeline, and in its own for its neighbours;
// the last column says whose fault it is.
//
// All is simulated: six nodes, virtual seconds, real gradients.
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/runtime/scenario.hpp>

#include <fstream>
#include <iostream>

using namespace leeway;

namespace {

constexpr std::uint32_t kStages = 3, kPipelines = 2;
constexpr std::uint32_t kSlowWorker = 1 * kStages + 1;  // stage 1 of pipeline 1
constexpr double kFactor = 3;

struct Setting {
  std::string name;
  bool slow;
  plan::Consistency consistency;
  plan::Balance balance;
};

std::string cell(std::size_t width, const std::string& text) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

/// "1.2": stage 2 of pipeline 1.
std::string name_of(WorkerId worker) {
  return concat(worker.value() / kStages, '.', worker.value() % kStages);
}

/// What most of the waiting at the shards was for.
std::string longest_wait(const Result& result) {
  if (result.totals.waits.empty() || result.totals.waits.front().time.seconds() <= 0)
    return "nobody";
  const auto& wait = result.totals.waits.front();
  return concat(name_of(wait.worker), " for ", name_of(wait.for_worker), ", ",
                percent(wait.time.seconds() / result.seconds), " of the time");
}

std::string row(const Setting& setting, const Result& result) {
  std::string text = cell(26, setting.name) + cell(8, fixed(result.seconds, 2)) +
                     cell(11, grouped(static_cast<std::uint64_t>(result.samples_per_second)));
  for (const auto& worker : result.totals.workers)
    text += cell(6, fixed(100 * worker.compute.seconds() / result.seconds, 0));
  std::uint64_t all = 0, of_slow = 0;
  for (std::uint32_t i = kStages - 1; i < result.totals.workers.size(); i += kStages) {
    all += result.totals.workers[i].samples;
    if (i / kStages == kSlowWorker / kStages) of_slow = result.totals.workers[i].samples;
  }
  text += cell(8, percent(static_cast<double>(of_slow) /
                          static_cast<double>(std::max<std::uint64_t>(all, 1))));
  return text + cell(10, percent(result.test_accuracy)) + "   " + longest_wait(result);
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("straggling-stage",
                    "Slow one stage of one of two pipelines down, and see who waits for whom.");
  scenario
      .description(
          "Six runs of a network of six layers on Fashion-MNIST, in virtual time: two pipelines of "
          "three stages by\n"
          "1f1b, eight micro-batches an update. Stage 1 of pipeline 1 takes three times as long in "
          "all runs but the\n"
          "first two. Columns 0.0 to 1.2: the share of the time, in percent, in which each stage "
          "computes;\n"
          "\"its part\": what the slow pipeline had of the samples. --staleness, --balance, "
          "--stages "
          "and --pipelines\n"
          "have no effect.")
      .data(fashion_mnist())
      .model(mlp({256, 256, 256, 256, 256}, 10))
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.02, 0.9))
      .stages(kStages)
      .pipelines(kPipelines)
      .pipeline_schedule("1f1b")
      .micro_batches(8)
      .shards(2)
      .batch(128)
      .epochs(1)
      .evaluate_every(0)
      .simulated({.speed = 5, .noise = 0.02});
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;

  using plan::Balance;
  const Setting settings[] = {{"nobody slow, bsp", false, bsp(), Balance::equal},
                              {"nobody slow, ssp(3)", false, ssp(3), Balance::equal},
                              {"slow, bsp", true, bsp(), Balance::equal},
                              {"slow, ssp(3)", true, ssp(3), Balance::equal},
                              {"slow, bsp, by speed", true, bsp(), Balance::by_speed},
                              {"slow, ssp(3), by speed", true, ssp(3), Balance::by_speed}};
  std::string table = cell(26, "") + cell(8, "seconds") + cell(11, "samples/s");
  for (std::uint32_t worker = 0; worker < kStages * kPipelines; ++worker)
    table += cell(6, name_of(WorkerId(worker)));
  table += cell(8, "its part") + cell(10, "accuracy") + "   the longest wait at the shards\n";
  if (!line.options.quiet) std::cout << table;
  for (const auto& setting : settings) {
    Plan plan = line.plan;
    plan.workers = kStages * kPipelines;
    plan.pipeline.stages = kStages;
    plan.consistency = setting.consistency;
    plan.balance = setting.balance;
    if (setting.slow) plan.stragglers.push_back(slow(kSlowWorker, kFactor));
    const Result result = run(plan, {.quiet = true});
    if (!result.ok()) {
      std::cerr << "straggling-stage: " << setting.name << ": "
                << (result.error.empty() ? "interrupted" : result.error) << '\n';
      return result.exit_code;
    }
    const std::string text = row(setting, result) + '\n';
    table += text;
    if (!line.options.quiet) std::cout << text << std::flush;
  }
  if (line.options.folder.empty()) return 0;
  std::ofstream(line.options.folder + "/table.txt") << table;
  std::cout << "\nKept in " << line.options.folder << ": table.txt\n";
  return 0;
}
