// straggling-stage: a slow stage in one of two pipelines that train the same weights.
//
// A pipeline is as fast as its slowest stage, whatever its schedule. The staleness bound decides
// what the other pipeline does. Under bsp it waits at every update. Under ssp(3) it runs three
// updates ahead and then waits as well, because the stage stays slow. Less work for the slow stage
// helps: fewer samples for its pipeline (--balance speed), or fewer layers for the stage (--split)
// if it is known in advance. Both pipelines have the same split, so the same stage of the other
// pipeline has fewer layers, too.
//
// A bound helps against temporary delays of changing stages, as in the last two rows. The last
// column shows the longest wait at the shards. A shard waits for the stage that pushes an update
// last, which in 1f1b is stage 0, even if another stage is slow.
//
// Everything is simulated: six nodes, virtual seconds, real gradients.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/policies/pipeline/schedule.hpp>

#include <algorithm>
#include <optional>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr std::uint32_t kStages = 3, kPipelines = 2;
constexpr std::uint32_t kSlowWorker = 1 * kStages + 1;  // stage 1 of pipeline 1
constexpr double kFactor = 3;
constexpr std::int64_t kTestSamples = 10'000;  // the whole test set
// Layers 0 and 1 are the pooling and the flatten; then a linear layer and its relu, seven times.
constexpr const char* kEven = "0-7,8-11,12-16";       // three, two and two linear layers
constexpr const char* kFewForSlow = "0-7,8-9,10-16";  // three, one and three

/// Seven equal linear layers on images of 14x14 pixels.
std::vector<plan::Layer> layers() {
  std::vector<plan::Layer> all = {avg_pool(2), flatten()};
  for (int i = 0; i < 6; ++i) {
    all.push_back(linear(196));
    all.push_back(relu());
  }
  all.push_back(linear(196));
  all.push_back(relu());
  all.push_back(linear(10));
  return all;
}

struct Setting {
  std::string name;
  plan::Consistency consistency;
  std::optional<plan::Straggler> straggler;
  plan::Balance balance = plan::Balance::equal;
  const char* split = kEven;
};

/// "1.2": stage 2 of pipeline 1.
std::string name_of(WorkerId worker) {
  return concat(worker.value() / kStages, '.', worker.value() % kStages);
}

/// The longest wait at the shards.
std::string longest_wait(const Result& result) {
  if (result.totals.waits.empty() || result.totals.waits.front().time.seconds() <= 0) return "none";
  const auto& wait = result.totals.waits.front();
  return concat(name_of(wait.worker), " for ", name_of(wait.for_worker), ", ",
                fixed(100 * wait.time.seconds() / result.seconds, 0), "% of the time");
}

std::string row(const Setting& setting, const Result& result) {
  std::string text = cell(28, setting.name) + cell(8, fixed(result.seconds, 2)) +
                     cell(11, grouped(static_cast<std::uint64_t>(result.samples_per_second)));
  for (const auto& worker : result.totals.workers)
    text += cell(5, fixed(100 * worker.compute.seconds() / result.seconds, 0));
  std::uint64_t all = 0, of_slow = 0;
  for (std::uint32_t i = kStages - 1; i < result.totals.workers.size(); i += kStages) {
    all += result.totals.workers[i].samples;
    if (i / kStages == kSlowWorker / kStages) of_slow = result.totals.workers[i].samples;
  }
  const double share = static_cast<double>(of_slow) / std::max(static_cast<double>(all), 1.0);
  return text + cell(10, concat(fixed(100 * share, 0), '%')) +
         cell(10, percent(result.test_accuracy)) + "   " + longest_wait(result) + '\n';
}

Plan plan_of(const Plan& base, const Setting& setting) {
  Plan plan = base;
  plan.pipeline.split = setting.split;
  plan.consistency = setting.consistency;
  plan.balance = setting.balance;
  if (setting.straggler) plan.stragglers.push_back(*setting.straggler);
  return plan;
}

/// The study's splits have one chunk per stage, and bsp allows no old gradients.
Status check_schedule(const std::string& name) {
  std::vector<std::string> allowed;
  for (const auto& entry : pipeline::catalogue()) {
    if (entry.schedule().asynchronous() || entry.chunks > 1) continue;
    if (entry.name == name) return {};
    allowed.emplace_back(entry.name);
  }
  return Error{concat("--schedule: ", name,
                      " does not support bsp with one chunk per stage, which this program ",
                      "compares; give one of ", join(allowed, ", "))};
}

std::string head() {
  std::string text = cell(28, "") + cell(8, "seconds") + cell(11, "samples/s");
  for (std::uint32_t worker = 0; worker < kStages * kPipelines; ++worker)
    text += cell(5, name_of(WorkerId(worker)));
  return text + cell(10, "its share") + cell(10, "accuracy") +
         "   the longest wait at the shards\n";
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("straggling-stage", "Slow down one stage of one of two pipelines.");
  scenario
      .description(
          "Nine runs of a network of eight layers on Fashion-MNIST, in virtual time: two\n"
          "pipelines of three stages by 1f1b, eight micro-batches per update. \"slow\": stage 1\n"
          "of pipeline 1 always takes three times as long. \"bursts\": every stage takes five\n"
          "times as long in a random twentieth of its iterations. Columns 0.0 to 1.2 show the\n"
          "percentage of time in which each stage computes, \"its share\" the percentage of the\n"
          "samples that pipeline 1 trained.")
      .decides({"--workers", "--staleness", "--balance", "--slow", "--stages", "--pipelines",
                "--chunks", "--split", "--from"})
      .decides(study::kOfSingleRuns)
      .data(fashion_mnist())
      .model(layers())
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.02, 0.9))
      .stages(kStages)
      .pipelines(kPipelines)
      .pipeline_schedule("1f1b")
      .micro_batches(8)
      .shards(2)
      .batch(128)
      .epochs(0.5)
      .evaluate_every(0)
      .simulated({.speed = 5, .noise = 0.02});
  CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  if (const auto allowed = check_schedule(line.plan.pipeline.schedule); !allowed)
    return report.refuse(allowed.error().text);
  if (const auto shared = study::share_data(line.plan, kTestSamples); !shared)
    return report.refuse(shared.error().text);

  const auto straggler = slow(kSlowWorker, kFactor);
  const auto bursts = slow_in_bursts(all_workers, 5, 0.05, 1);
  const Setting settings[] = {
      {"no slow stage, bsp", bsp(), {}},
      {"no slow stage, ssp(3)", ssp(3), {}},
      {"slow, bsp", bsp(), straggler},
      {"slow, ssp(3)", ssp(3), straggler},
      {"slow, bsp, by speed", bsp(), straggler, plan::Balance::by_speed},
      {"slow, ssp(3), by speed", ssp(3), straggler, plan::Balance::by_speed},
      {"slow, bsp, fewer layers", bsp(), straggler, plan::Balance::equal, kFewForSlow},
      {"bursts, bsp", bsp(), bursts},
      {"bursts, ssp(3)", ssp(3), bursts}};
  std::vector<study::Named> plans;
  for (const auto& setting : settings) plans.push_back({setting.name, plan_of(line.plan, setting)});
  auto status = study::check(plans);
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  report.print(head());
  std::vector<double> seconds;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Result result = run(plans[i].plan, {.quiet = true});
    if (!result.ok()) return report.failed(plans[i].name, result);
    report.print(row(settings[i], result));
    seconds.push_back(result.seconds);
  }
  const auto times = [&](std::size_t a, std::size_t b) {
    return fixed(seconds[a] / seconds[b], 2);
  };
  report.print(concat(
      "\nThe slow stage makes bsp take ", times(2, 0), " times as long, and ssp(3) ", times(3, 1),
      " times: a bound does not help\nagainst a stage that is always slow. Batches by speed "
      "reduce this to ",
      times(4, 0), " under bsp, fewer layers to ", times(6, 0),
      ".\nWith temporary delays, bsp takes ", times(7, 8), " times as long as ssp(3).\n"));
  return report.end();
}
