// bubble-study: the idle time of pipeline stages under every schedule.
//
// At the start of an update the last stage waits for the first activation, and at its end the first
// stage waits for the last gradient: this is the bubble. Each schedule has a formula for it, which
// assumes stages of equal cost and free messages and updates. The program runs the real actors in
// virtual time, in a world where these assumptions hold, and compares: the results agree to the
// last digit. --world latency=1ms adds what the formulas leave out: the cost of messages, pulls and
// pushes.
//
// The model has sixteen layers that take a millisecond per sample, so that every number of stages
// splits it evenly. Costs are counted, not computed (--gradients none).
#include <leeway/actors/outbox.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/policies/pipeline/play.hpp>

#include <algorithm>
#include <cmath>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr std::uint32_t kLayers = 16;
constexpr int kStages[] = {2, 4, 8};
constexpr int kMicroBatches[] = {4, 8, 16, 32};
constexpr int kUpdates = 30;

/// A layer with a million operations per sample and a single weight, whose update is nearly free.
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

/// A split of the layers into equal chunks: "0-3,4-7,8-11,12-15".
std::string equal_split(std::uint32_t chunks) {
  const std::uint32_t length = kLayers / chunks;
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
  plan.batch = plan.micro_batches;  // one sample each
  plan.consistency = ssp(stages);   // room for the versions that weight_stashing keeps
  plan.stop = {.epochs = 0, .iterations = kUpdates};
  return plan;
}

/// The time from the start of the first forward to the end of the last backward.
struct Span {
  std::optional<Instant> begin, end;

  void observe(Instant at, const Event& event) {
    if (event.as<event::StepStarted>() && !begin) begin = at;
    const auto* computed = event.as<event::StageComputed>();
    if (computed && computed->operation == event::StageComputed::Operation::backward_weights)
      end = at;
  }
};

/// The share of the stages' time in which they compute nothing.
double idle(const Result& result, const Span& span) {
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double stages = static_cast<double>(result.totals.workers.size());
  return 1 - busy / ((*span.end - *span.begin).seconds() * stages);
}

struct Theory {
  double share = 0;
  bool played = false;  // no formula for these sizes
};

/// The result of the schedule's formula; without one for these sizes, of playing its table.
Theory theory(const pipeline::Schedule& schedule, const pipeline::Spec& spec) {
  Theory theory;
  auto share = schedule.bubble(spec, {});
  if (!share) {
    const auto costs = pipeline::Costs::equal(spec.stages * spec.chunks, {});
    share = pipeline::play(*pipeline::make_table(spec), costs)->bubble();
    theory.played = true;
  }
  theory.share = static_cast<double>(share->part) / static_cast<double>(share->whole);
  return theory;
}

/// In percentage points.
std::string points(double difference) {
  return fixed(100 * difference, 4);
}

pipeline::Spec spec_of(const pipeline::CatalogueEntry& entry, int stages, int micro_batches) {
  return {.schedule = std::string(entry.name),
          .stages = stages,
          .micro_batches = micro_batches,
          .chunks = entry.chunks,
          .updates = kUpdates};
}

/// All plans that the schedules allow.
std::vector<study::Named> all_plans(const Plan& base) {
  std::vector<study::Named> all;
  for (const auto& entry : pipeline::catalogue())
    for (const int stages : kStages)
      for (const int micro_batches : kMicroBatches) {
        const auto spec = spec_of(entry, stages, micro_batches);
        if (pipeline::validate(spec))
          all.push_back({concat(entry.name, " with ", stages, " stages"), plan_of(base, spec)});
      }
  return all;
}

class Study {
 public:
  Study(Plan base, study::Report& report) : base_(std::move(base)), report_(report) {}

  /// Returns the exit code.
  int run_all() {
    std::string head = "schedule    stages";
    for (const int micro_batches : kMicroBatches)
      head += cell(kWidth, concat(micro_batches, " micro-batches"));
    report_.print(head + cell(kWidth, "difference") + '\n');
    for (const auto& entry : pipeline::catalogue())
      for (const int stages : kStages)
        if (const int code = measure(entry, stages)) return code;
    report_.print(concat("\nMeasured and expected differ by at most ", points(most_),
                         " percentage points.\n",
                         played_ ? "* No formula for these sizes: the result of playing the "
                                   "schedule's table.\n"
                                 : ""));
    return report_.end();
  }

 private:
  static constexpr std::size_t kWidth = 19;

  /// Prints the row of a schedule and a number of stages. Returns the exit code.
  int measure(const pipeline::CatalogueEntry& entry, int stages) {
    std::string row = concat(entry.name, std::string(16 - entry.name.size(), ' '),
                             stages < 10 ? " " : "", stages);
    double difference = 0;
    for (const int micro_batches : kMicroBatches) {
      const auto spec = spec_of(entry, stages, micro_batches);
      if (!pipeline::validate(spec)) {
        row += cell(kWidth, "-");
        continue;
      }
      Span span;
      const Result result = run(
          plan_of(base_, spec),
          {.quiet = true,
           .on_event = [&](Address, Instant at, const Event& event) { span.observe(at, event); }});
      if (!result.ok())
        return report_.failed(concat(entry.name, " with ", stages, " stages"), result);
      const double measured = idle(result, span);
      const auto [expected, played] = theory(entry.schedule(), spec);
      difference = std::max(difference, std::abs(measured - expected));
      played_ |= played;
      row +=
          cell(kWidth, concat(percent(measured), " (", percent(expected), played ? "*" : "", ')'));
    }
    report_.print(row + cell(kWidth, points(difference)) + '\n');
    most_ = std::max(most_, difference);
    return 0;
  }

  Plan base_;
  study::Report& report_;
  double most_ = 0;
  bool played_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  register_layer("unit", [](const std::string&) -> Expected<std::unique_ptr<Layer>> {
    return std::unique_ptr<Layer>(std::make_unique<Unit>());
  });
  Scenario scenario("bubble-study",
                    "Compare the idle time of pipeline stages with the schedules' formulas.");
  scenario
      .description(
          "Nine schedules, 2 to 8 stages and 4 to 32 micro-batches per update, thirty updates\n"
          "each, in virtual time and without noise. The table shows the share of time in which\n"
          "stages compute nothing, in brackets the share by the schedule's formula, and the\n"
          "largest difference in the row in percentage points. * marks sizes without a formula,\n"
          "for which the schedule's table is played instead, and - sizes that the schedule does\n"
          "not allow. Schedules with chunks have two per stage. --world latency=1ms gives "
          "messages\n"
          "a cost, --slow 1:2x slows down the second stage of each pipeline.")
      .decides({"--epochs", "--batch", "--micro-batches", "--iterations", "--seconds",
                "--until-accuracy", "--evaluate-every", "--workers", "--staleness", "--balance",
                "--gradients", "--fault", "--from"})
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
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
  study::Report report(line);
  auto status = study::check(all_plans(line.plan));
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  return Study(line.plan, report).run_all();
}
