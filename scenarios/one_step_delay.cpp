// one-step-delay: does an update by gradients that are one step old learn as well?
//
// Reproduces the comparison of Zmushko et al., "One-Step Gradient Delay Is Not a Barrier for
// Large-Scale Asynchronous Pipeline Parallel LLM Pretraining", ICML 2026, at the size of a machine
// with two cores: the same tokens, model and batches under 1f1b, which empties the pipeline after
// each update, and under 2bw (PipeDream-2BW), which never does, so that each gradient is computed
// on the weights before the last update. AdamW also trains on the weights that its moments predict.
// Each optimizer has its own learning rate for each schedule, tuned on another seed.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tuned_study.hpp"

using namespace leeway;
using study::cell;
using study::kSeeds;

namespace {

constexpr std::int64_t kTestSamples = 512;
constexpr double kDiverged = study::kNever;
/// The paper's gaps: final loss under 2bw minus that of synchronous training.
constexpr double kPublishedAdamW = 0.2, kPublishedMuon = 0.012;

struct Row {
  const char* name;
  plan::OptimizerKind kind;
  std::vector<double> rates;
  const char* published = "";
  bool predicts = false;  // weights under 2bw; under 1f1b it is the row before
};
const std::vector<double> kAdamRates = {3e-4, 1e-3, 3e-3, 1e-2, 3e-2};
const Row kRows[] = {
    {"adamw, beta1 0.9", plan::AdamW{.beta1 = 0.9}, kAdamRates, "above 0.2"},
    {"adamw 0.9, predicted", plan::AdamW{.beta1 = 0.9}, kAdamRates, "", true},
    {"adamw, beta1 0.95", plan::AdamW{.beta1 = 0.95}, kAdamRates},
    {"adamw 0.95, predicted", plan::AdamW{.beta1 = 0.95}, kAdamRates, "", true},
    {"adamw, beta1 0.99", plan::AdamW{.beta1 = 0.99}, kAdamRates},
    {"adamw 0.99, predicted", plan::AdamW{.beta1 = 0.99}, kAdamRates, "", true},
    {"nadam, beta1 0.99", plan::NAdam{.beta1 = 0.99}, kAdamRates},
    {"muon", plan::Muon{}, {1e-3, 3e-3, 1e-2, 3e-2, 1e-1}, "0.012"},
};
/// The rows with published gaps.
const Row& kAdamW = kRows[0];
const Row& kMuon = std::end(kRows)[-1];
constexpr std::string_view kSynchronous = "1f1b", kDelayed = "2bw";

std::string name_of(const Row& row, std::string_view schedule) {
  return concat(row.predicts && schedule == kSynchronous ? (&row)[-1].name : row.name, ", ",
                schedule);
}

std::vector<study::Subject> subjects(const Plan& base) {
  std::vector<study::Subject> all;
  for (const Row& row : kRows)
    for (const std::string_view schedule : {kSynchronous, kDelayed}) {
      const bool delayed = schedule == kDelayed;
      if (row.predicts && !delayed) continue;
      all.push_back({name_of(row, schedule), row.rates, [&base, &row, schedule, delayed](double) {
                       Plan plan = base;
                       plan.optimizer.kind = row.kind;
                       plan.pipeline.schedule = schedule;
                       plan.pipeline.predict_weights = row.predicts;
                       plan.consistency = delayed ? ssp(1) : bsp();
                       return plan;
                     }});
    }
  return all;
}

study::Campaign::Figures figures_of(const Result& result) {
  return {{"loss", result.totals.evaluations.back().loss}};
}
const study::Measures kMeasures{
    .of = figures_of, .failed = {{"loss", kDiverged}}, .criteria = {"loss"}};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Requires ascending losses.
std::string text_of(const std::vector<double>& losses) {
  if (std::isinf(mean(losses))) return "diverged";
  const auto text = [](double loss) { return fixed(loss, 3); };
  return concat(text(mean(losses)), ' ', study::range_text(losses, text));
}

class Tables {
 public:
  explicit Tables(const study::TunedStudy& study) : study_(study) {}

  std::string table() const {
    std::string text = concat("\nFinal test loss, mean (least to most) of ", kSeeds,
                              " seeds; * is the edge of the rates tried\n\n", cell(23, "optimizer"),
                              cell(26, std::string(kSynchronous)), cell(26, std::string(kDelayed)),
                              cell(9, "gap"), cell(12, "published"), cell(19, "rates"));
    for (const Row& row : kRows) {
      const auto rate_text = [&](std::string_view schedule) {
        return study_.rate_text(name_of(row, schedule), "*");
      };
      const std::string synchronous = row.predicts ? "" : concat(rate_text(kSynchronous), ", ");
      text += concat('\n', cell(23, row.name),
                     cell(26, row.predicts ? "" : text_of(losses(row, kSynchronous))),
                     cell(26, text_of(losses(row, kDelayed))), cell(9, fixed(gap(row), 3)),
                     cell(12, row.published), cell(19, synchronous + rate_text(kDelayed)));
    }
    return text + '\n';
  }
  std::string verdict() const {
    const double adamw = gap(kAdamW), muon = gap(kMuon);
    // The seeds of one cell differ by up to this much.
    double noise = 0;
    for (const Row* row : {&kAdamW, &kMuon})
      for (const std::string_view schedule : {kSynchronous, kDelayed}) {
        const auto all = losses(*row, schedule);
        noise = std::max(noise, all.back() - all.front());
      }
    std::string text =
        concat("\nPublished: one step of delay costs adamw more than ", kPublishedAdamW,
               ", and muon ", kPublishedMuon, ". Here: ", fixed(adamw, 3), " and ", fixed(muon, 3),
               "; seeds differ by up to ", fixed(noise, 3), ".\n");
    if (adamw - muon > noise)
      text += "The published order is reproduced: the delay costs adamw more than muon.\n";
    else if (muon - adamw > noise)
      text += "The published order is not reproduced: the delay costs muon more than adamw.\n";
    else
      text +=
          "A null result at this size: the two gaps differ by less than seeds do. The published "
          "models have 360 million weights and more.\n";
    return text;
  }

 private:
  /// Of the seeds, ascending.
  std::vector<double> losses(const Row& row, std::string_view schedule) const {
    return study_.values(name_of(row, schedule), "loss");
  }
  double gap(const Row& row) const {
    return mean(losses(row, kDelayed)) - mean(losses(row, kSynchronous));
  }

  const study::TunedStudy& study_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("one-step-delay",
                    "Reproduce what gradients of one step ago cost AdamW, NAdam and Muon.");
  scenario
      .description(
          "A GPT of two layers and width 48 in two stages learns the King James Bible (apt-get\n"
          "install bible-kjv) under 1f1b, and under 2bw, whose gradients are one step old. Five\n"
          "optimizers, AdamW also with predicted weights, five learning rates on one seed for "
          "each,\n"
          "and the best of them on three others: 104 simulated runs with real gradients. An\n"
          "interrupted reproduction continues in the same folder (--out). --epochs 0.5 has ten\n"
          "times the tokens.")
      .decides({"--schedule", "--staleness", "--optimizer", "--lr", "--predict-weights",
                "--gradients", "--simulate"})
      .decides(study::kOfSingleRuns)
      .data(text(32))
      .model(gpt({.layers = 2, .width = 48, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(3e-3, 0.01))
      .lr_schedule(cosine(0))
      .stages(2)
      .micro_batches(4)
      .consistency(bsp())
      .shards(1)
      .batch(16)
      .epochs(0.05)
      .evaluate_every(0)
      .simulated({.speed = 5});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  const auto shared = study::share_data(line.plan, kTestSamples);
  if (!shared) return report.refuse(shared.error().text);
  study::TunedStudy study(line.plan.seed, subjects(line.plan), kMeasures, line.options.quiet);
  return study.run(report, {{"plan", to_json(line.plan)}, {"test_samples", kTestSamples}}, [&] {
    const Tables tables(study);
    report.print(tables.table());
    report.print(tables.verdict());
  });
}
