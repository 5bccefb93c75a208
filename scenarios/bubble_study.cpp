// bubble-study: how long the stages of a pipeline stand idle, by every schedule there is.
//
// At the beginning of an update the last stage waits for the first activation, and at its end the
// first one for the last gradient: that is the bubble. Every schedule has a formula for it, which
// takes all parts of the model for equally expensive and messages for free. Here the same is
// measured, in virtual time, with the actors that train for real: the table has both, side by side.
// With
// --world latency=1ms one sees what the formulas leave out.
//
// The model is sixteen equal layers, so that each number of stages cuts it evenly; nothing is
// computed, only counted (--gradients none).
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/policies/pipeline/schedule.hpp>
#include <leeway/runtime/scenario.hpp>

#include <fstream>
#include <iostream>

using namespace leeway;

namespace {

constexpr std::uint32_t kLayers = 16, kWidth = 256;
constexpr int kStages[] = {2, 4, 8};
constexpr int kMicroBatches[] = {4, 8, 16, 32};
constexpr int kUpdates = 30;
constexpr std::uint32_t kSamples = 64;  // of a micro-batch

/// The layers in so many equal parts: "0-3,4-7,8-11,12-15".
std::string equal_split(std::uint32_t parts) {
  const std::uint32_t length = kLayers / parts;
  std::vector<std::string> all;
  for (std::uint32_t first = 0; first < kLayers; first += length)
    all.push_back(length == 1 ? concat(first) : concat(first, '-', first + length - 1));
  return join(all, ",");
}

Plan plan_of(const Plan& base, const pipeline::Spec& spec) {
  Plan plan = base;
  const auto stages = static_cast<std::uint32_t>(spec.stages);
  const auto chunks = static_cast<std::uint32_t>(spec.chunks);
  plan.workers = stages;
  plan.pipeline = {.stages = stages,
                   .schedule = spec.schedule,
                   .chunks = chunks,
                   .split = equal_split(stages * chunks)};
  plan.micro_batches = static_cast<std::uint32_t>(spec.micro_batches);
  plan.batch = kSamples * plan.micro_batches;
  plan.consistency = ssp(stages);  // room for the versions that weight_stashing keeps
  plan.stop = {.epochs = 0, .iterations = kUpdates};
  return plan;
}

/// The share of all stages' time that they did not compute in.
double idle(const Result& result) {
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  return 1 - busy / (result.seconds * static_cast<double>(result.totals.workers.size()));
}

std::string theory(const pipeline::Schedule& schedule, const pipeline::Spec& spec) {
  const auto share = schedule.bubble(spec, {});
  return share ? percent(static_cast<double>(share->part) / static_cast<double>(share->whole))
               : "?";
}

std::string cell(const std::string& text) {
  return std::string(text.size() < 19 ? 19 - text.size() : 1, ' ') + text;
}

/// The row of a schedule and a number of stages; empty when a run did not end well.
std::string row(const Plan& base, const pipeline::CatalogueEntry& entry, int stages) {
  std::string text = std::string(entry.name) + std::string(16 - entry.name.size(), ' ');
  text += concat(stages < 10 ? " " : "", stages);
  for (const int micro_batches : kMicroBatches) {
    pipeline::Spec spec{.schedule = std::string(entry.name),
                        .stages = stages,
                        .micro_batches = micro_batches,
                        .chunks = entry.name == "interleaved" ? 2 : 1,
                        .updates = kUpdates};
    if (!pipeline::validate(spec)) {
      text += cell("-");
      continue;
    }
    const Result result = run(plan_of(base, spec), {.quiet = true});
    if (!result.ok()) {
      std::cerr << "bubble-study: " << entry.name << ": "
                << (result.error.empty() ? "interrupted" : result.error) << '\n';
      return "";
    }
    text += cell(concat(percent(idle(result)), " (", theory(entry.schedule(), spec), ')'));
  }
  return text + '\n';
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("bubble-study",
                    "Measure how long the stages of a pipeline idle, against the formulas.");
  scenario
      .description(
          "Six schedules, 2 to 8 stages and 4 to 32 micro-batches an update, thirty updates each, "
          "in virtual time\n"
          "and without noise. In the table: the share of their time in which stages compute "
          "nothing, and in brackets\n"
          "what the schedule's formula says; - where it does not allow the sizes, ? where it has "
          "no "
          "formula.\n"
          "--stages, --schedule and --micro-batches have no effect. --world latency=1ms,link=1 "
          "makes messages cost.")
      .data(clusters(kWidth, kWidth, 4096))
      .model(std::vector<plan::Layer>(kLayers, linear(kWidth)))
      .loss(softmax_cross_entropy())
      .optimizer(sgd(0.01))
      .shards(4)
      .evaluate_every(0)
      .simulated({.memory = 1e9,
                  .noise = 0,
                  .latency_us = 0,
                  .local_latency_us = 0,
                  .jitter = 0,
                  .link = 0,
                  .cost_only = true});
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;

  std::string table = "schedule    stages";
  for (const int micro_batches : kMicroBatches)
    table += cell(concat(micro_batches, " micro-batches"));
  table += '\n';
  if (!line.options.quiet) std::cout << table;
  for (const auto& entry : pipeline::catalogue())
    for (const int stages : kStages) {
      const std::string text = row(line.plan, entry, stages);
      if (text.empty()) return 1;
      table += text;
      if (!line.options.quiet) std::cout << text << std::flush;
    }
  if (line.options.folder.empty()) return 0;
  std::ofstream(line.options.folder + "/table.txt") << table;
  std::cout << "\nKept in " << line.options.folder << ": table.txt\n";
  return 0;
}
