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
#include <leeway/policies/pipeline/play.hpp>
#include <leeway/runtime/scenario.hpp>

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

struct Theory {
  double share = 0;
  bool played = false;  // there is no formula for these sizes
};

/// By the schedule's formula; where it has none for these sizes, its table is played.
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

/// All runs that the schedules allow.
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

  /// An exit code.
  int run_all() {
    std::string head = "schedule    stages";
    for (const int micro_batches : kMicroBatches)
      head += cell(kWidth, concat(micro_batches, " micro-batches"));
    report_.tell(head + cell(kWidth, "difference") + '\n');
    for (const auto& entry : pipeline::catalogue())
      for (const int stages : kStages)
        if (const int code = measure(entry, stages)) return code;
    report_.tell(concat("\nMeasured and expected differ by at most ", points(most_),
                        " percentage points.\n",
                        played_ ? "* There is no formula for these sizes: what the schedule's "
                                  "table comes to when it is played.\n"
                                : ""));
    return report_.end();
  }

 private:
  static constexpr std::size_t kWidth = 19;

  /// The row of a schedule and a number of stages. An exit code.
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
      const Result result =
          run(plan_of(base_, spec),
              {.quiet = true,
               .on_event = [&](Address, Instant at, const Event& event) { span.look(at, event); }});
      if (!result.ok())
        return report_.failed(concat(entry.name, " with ", stages, " stages"), result);
      const double measured = idle(result, span);
      const auto [expected, played] = theory(entry.schedule(), spec);
      difference = std::max(difference, std::abs(measured - expected));
      played_ |= played;
      row +=
          cell(kWidth, concat(percent(measured), " (", percent(expected), played ? "*" : "", ')'));
    }
    report_.tell(row + cell(kWidth, points(difference)) + '\n');
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
                    "Measure how long the stages of a pipeline idle, against the formulas.");
  scenario
      .description(
          "Six schedules, 2 to 8 stages and 4 to 32 micro-batches an update, thirty updates each, "
          "in virtual time\n"
          "and without noise. In the table: the share of their time in which stages compute "
          "nothing, in brackets what\n"
          "the schedule's formula says, and last by how much the two differ in this row, in "
          "percentage points.\n"
          "* stands where there is no formula for the sizes, and the schedule's table is played "
          "instead, - where the\n"
          "schedule does not allow them; interleaved has two chunks a stage. --world latency=1ms "
          "makes messages cost,\n"
          "--slow 1:2x slows the second stage of each pipeline down.")
      .decides({"--epochs", "--batch", "--micro-batches", "--iterations", "--seconds",
                "--until-accuracy", "--evaluate-every", "--workers", "--staleness", "--balance",
                "--gradients", "--fault", "--from"})
      .decides(study::kOfPipelines)
      .decides(study::kOfClusters)
      .decides(study::kOfRunFolders)
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
