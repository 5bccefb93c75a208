// bubble-study: how long the stages of a pipeline stand idle, by every schedule there is.
//
// At the beginning of an update the last stage waits for the first activation, and at its end the
// first one for the last gradient: that is the bubble. Every schedule has a formula for it, which
// takes all parts of the model for equally expensive, and messages and updates for free. Here the
// same is measured with the actors that train for real, in virtual time, in a world where that is
// so: the two agree to the last digit, and the last column says so. With --world latency=1ms one
// sees what the formulas leave out: what messages between stages cost, and pulls and pushes.
//
// The model is sixteen layers that take a millisecond each for one sample, so that each number of
// stages cuts it evenly; nothing is computed, only counted (--gradients none).
#include <leeway/core/check.hpp>
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/monitoring/run_folder.hpp>
#include <leeway/policies/pipeline/play.hpp>
#include <leeway/runtime/scenario.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

using namespace leeway;

namespace {

constexpr std::uint32_t kLayers = 16;
constexpr int kStages[] = {2, 4, 8};
constexpr int kMicroBatches[] = {4, 8, 16, 32};
constexpr int kUpdates = 30;

/// A layer for counting: a million operations a sample, and a single weight, whose update costs
/// next to nothing.
class Unit final : public Layer {
 public:
  std::string_view kind() const override { return "unit"; }
  Expected<Shape> set_input(const Shape& input) override { return input; }
  std::vector<ParameterSpec> parameters() const override {
    return {{.name = "weight", .shape = Shape{1}}};
  }
  bool splits_backward() const override { return true; }
  std::int64_t flops() const override { return 1'000'000; }
  void forward(const ForwardArgs&) const override { LW_CHECK(false, "give --gradients none"); }
  void backward(const BackwardArgs&) const override { LW_CHECK(false, "give --gradients none"); }
};

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
  plan.batch = plan.micro_batches;  // a sample each
  plan.consistency = ssp(stages);   // room for the versions that weight_stashing keeps
  plan.stop = {.epochs = 0, .iterations = kUpdates};
  return plan;
}

/// From the first forward's start to the last backward's end.
struct Span {
  std::optional<Instant> begin, end;

  void look(Instant at, const Event& event) {
    if (event.kind == Event::Kind::step_started && !begin) begin = at;
    if (event.kind == Event::Kind::backward_weights) end = at;
  }
};

/// The share of all stages' time in which they compute nothing.
double idle(const Result& result, const Span& span) {
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double stages = static_cast<double>(result.totals.workers.size());
  return 1 - busy / ((*span.end - *span.begin).seconds() * stages);
}

/// By the schedule's formula; where it has none for these sizes, its table is played.
double theory(const pipeline::Schedule& schedule, const pipeline::Spec& spec) {
  auto share = schedule.bubble(spec, {});
  if (!share) {
    const auto costs = pipeline::Costs::equal(spec.stages * spec.chunks, {});
    share = pipeline::play(*pipeline::make_table(spec), costs)->bubble();
  }
  return static_cast<double>(share->part) / static_cast<double>(share->whole);
}

std::string cell(const std::string& text) {
  return std::string(text.size() < 19 ? 19 - text.size() : 1, ' ') + text;
}

/// In percentage points.
std::string points(double difference) {
  return fixed(100 * difference, 4);
}

struct Row {
  std::string text;  // empty when a run did not end well
  double difference = 0;
};

/// Of a schedule and a number of stages.
Row measure(const Plan& base, const pipeline::CatalogueEntry& entry, int stages) {
  Row row;
  row.text =
      concat(entry.name, std::string(16 - entry.name.size(), ' '), stages < 10 ? " " : "", stages);
  for (const int micro_batches : kMicroBatches) {
    const pipeline::Spec spec{.schedule = std::string(entry.name),
                              .stages = stages,
                              .micro_batches = micro_batches,
                              .chunks = entry.name == "interleaved" ? 2 : 1,
                              .updates = kUpdates};
    if (!pipeline::validate(spec)) {
      row.text += cell("-");
      continue;
    }
    Span span;
    const Result result =
        run(plan_of(base, spec),
            {.quiet = true,
             .on_event = [&](Address, Instant at, const Event& event) { span.look(at, event); }});
    if (!result.ok()) {
      std::cerr << "bubble-study: " << entry.name << ": "
                << (result.error.empty() ? "interrupted" : result.error) << '\n';
      return {};
    }
    const double measured = idle(result, span), expected = theory(entry.schedule(), spec);
    row.difference = std::max(row.difference, std::abs(measured - expected));
    row.text += cell(concat(percent(measured), " (", percent(expected), ')'));
  }
  row.text += cell(points(row.difference)) + '\n';
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  register_layer("unit", [](const std::string&) -> Expected<std::unique_ptr<Layer>> {
    return std::unique_ptr<Layer>(std::make_unique<Unit>());
  });
  Scenario scenario("bubble-study",
                    "Measure how long the stages of a pipeline idle, against the formulas.");
  scenario
      .description(
          "Six schedules, 2 to 8 stages and 4 to 32 micro-batches an update, thirty updates each, "
          "in virtual time\n"
          "and without noise. In the table: the share of their time in which stages compute "
          "nothing, in brackets what\n"
          "the schedule's formula says, and last by how much the two differ in this row, in "
          "percentage points.\n"
          "- stands where the schedule does not allow the sizes; interleaved has two chunks a "
          "stage. --stages,\n"
          "--schedule and --micro-batches have no effect. --world latency=1ms makes messages "
          "cost.")
      .data(clusters(2, 2, 4096))
      .model(std::vector<plan::Layer>(kLayers, custom("unit")))
      .loss(softmax_cross_entropy())
      .optimizer(sgd(0.01))
      .shards(4)
      .evaluate_every(0)
      .simulated({.speed = 1,
                  .memory = 1e9,
                  .noise = 0,
                  .latency_us = 0,
                  .local_latency_us = 0,
                  .jitter = 0,
                  .link = 0,
                  .cost_only = true});
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  const std::string& folder = line.options.folder;
  if (const auto made = folder.empty() ? Status() : make_study_folder(folder); !made) {
    std::cerr << "bubble-study: " << made.error().text << '\n';
    return 2;
  }

  std::string table;
  const auto tell = [&](const std::string& text) {
    table += text;
    if (!line.options.quiet) std::cout << text << std::flush;
  };
  std::string head = "schedule    stages";
  for (const int micro_batches : kMicroBatches)
    head += cell(concat(micro_batches, " micro-batches"));
  tell(head + cell("difference") + '\n');
  double most = 0;
  for (const auto& entry : pipeline::catalogue())
    for (const int stages : kStages) {
      const Row row = measure(line.plan, entry, stages);
      if (row.text.empty()) return 1;
      most = std::max(most, row.difference);
      tell(row.text);
    }
  tell(concat("\nMeasured and formula differ by at most ", points(most), " percentage points.\n"));
  if (folder.empty()) return 0;
  std::ofstream(folder + "/table.txt") << table;
  std::cout << "\nKept in " << folder << ": table.txt\n";
  return 0;
}
