// one-step-delay: does an update by gradients that are one step old learn as well?
//
// Reproduces the comparison of Zmushko et al., "One-Step Gradient Delay Is Not a Barrier for
// Large-Scale Asynchronous Pipeline Parallel LLM Pretraining", ICML 2026, at the size of a machine
// with two cores: the same tokens, model and batches under 1f1b, which empties the pipeline after
// each update, and under 2bw (PipeDream-2BW), which never does, so that each gradient is computed
// on the weights before the last update. AdamW also trains on the weights that its moments predict.
// Each optimizer has its own learning rate for each schedule, tuned on another seed. A second part
// measures the cost of older gradients in deeper pipelines (stashing_depth.hpp).
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "reproduction.hpp"
#include "stashing_depth.hpp"
#include "tuned_study.hpp"

using namespace leeway;
using study::cell;
using study::kSeeds;
using study::Outcome;

namespace {

constexpr std::int64_t kTestSamples = 512, kStashingTestSamples = 128;
constexpr double kDiverged = study::kNever;
/// The paper's gaps: final loss under 2bw minus that of synchronous training.
constexpr double kPublishedAdamW = 0.2, kPublishedMuon = 0.012;
/// NAdam's momentum then reaches beta1 within 100 updates. The usual 0.004, for long runs, leaves
/// it at half of beta1 in this one. The paper's value is not known here.
constexpr double kMomentumDecay = 1;

struct Row {
  const char* name;
  plan::OptimizerKind kind;
  std::vector<double> rates;
  const char* published = "";
  double published_gap = 0;  // 0: none
  bool predicts = false;     // weights under 2bw; under 1f1b it is the row before
};
const std::vector<double> kAdamRates = {3e-4, 1e-3, 3e-3, 1e-2, 3e-2};
const Row kRows[] = {
    {"adamw, beta1 0.9", plan::AdamW{.beta1 = 0.9}, kAdamRates, "above 0.2", kPublishedAdamW},
    {"adamw 0.9, predicted", plan::AdamW{.beta1 = 0.9}, kAdamRates, "", 0, true},
    {"adamw, beta1 0.95", plan::AdamW{.beta1 = 0.95}, kAdamRates},
    {"adamw 0.95, predicted", plan::AdamW{.beta1 = 0.95}, kAdamRates, "", 0, true},
    {"adamw, beta1 0.99", plan::AdamW{.beta1 = 0.99}, kAdamRates},
    {"adamw 0.99, predicted", plan::AdamW{.beta1 = 0.99}, kAdamRates, "", 0, true},
    {"nadam, beta1 0.99", plan::NAdam{.beta1 = 0.99, .momentum_decay = kMomentumDecay}, kAdamRates},
    {"muon", plan::Muon{}, {1e-3, 3e-3, 1e-2, 3e-2, 1e-1}, "0.012", kPublishedMuon},
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

study::Measures measures() {
  return {.of =
              [](const Result& result) {
                const double updates = study::stashing_updates(result);
                study::Campaign::Figures figures{{"loss", result.totals.evaluations.back().loss},
                                                 {"iterations", updates}};
                study::keep_losses(figures, result);
                return figures;
              },
          .failed = {{"loss", kDiverged}, {"iterations", study::kNever}},
          .criteria = {"loss"}};
}

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
    std::string text =
        concat("\nFinal test loss, mean (least to most) of ", kSeeds,
               " seeds; * is the edge of the rates tried\n\n", cell(23, "optimizer"),
               cell(26, std::string(kSynchronous)), cell(26, std::string(kDelayed)), cell(9, "gap"),
               cell(12, "published"), cell(11, "deviation"), cell(19, "rates"));
    for (const Row& row : kRows) {
      const auto rate_text = [&](std::string_view schedule) {
        return study_.rate_text(name_of(row, schedule), "*");
      };
      const std::string synchronous = row.predicts ? "" : concat(rate_text(kSynchronous), ", ");
      text += concat('\n', cell(23, row.name),
                     cell(26, row.predicts ? "" : text_of(losses(row, kSynchronous))),
                     cell(26, text_of(losses(row, kDelayed))), cell(9, fixed(gap(row), 3)),
                     cell(12, row.published),
                     cell(11, row.published_gap > 0 ? fixed(gap(row) - row.published_gap, 3) : ""),
                     cell(19, synchronous + rate_text(kDelayed)));
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
    const std::string gaps =
        concat("one step of delay costs adamw ", fixed(adamw, 3), " (published: more than ",
               kPublishedAdamW, ") and muon ", fixed(muon, 3), " (published: ", kPublishedMuon,
               "); seeds differ by up to ", fixed(noise, 3));
    if (adamw - muon > noise)
      return study::verdict_line(Outcome::reproduced,
                                 concat("the delay costs adamw more than muon: ", gaps));
    if (muon - adamw > noise)
      return study::verdict_line(Outcome::not_reproduced,
                                 concat("the delay costs muon more than adamw: ", gaps));
    return study::verdict_line(Outcome::null_result,
                               concat("the two gaps differ by less than seeds do, at a size far "
                                      "below the published 360 million weights: ",
                                      gaps));
  }

  std::string seeds() const {
    std::vector<std::string> names;
    for (const Row& row : kRows)
      for (const std::string_view schedule : {kSynchronous, kDelayed})
        if (!row.predicts || schedule == kDelayed) names.push_back(name_of(row, schedule));
    return study_.seeds_table("Final losses of each seed", names, "loss", study::loss_text);
  }

  /// The gaps of the rows, from left to right.
  Chart chart() const {
    Chart chart{.title = "Cost of one step of delay",
                .x_label = "row of the table",
                .y_label = "final loss under 2bw minus 1f1b"};
    Series published{.name = "published"}, here{.name = "here"}, predicted{.name = "predicted"};
    for (const Row& row : kRows) {
      const auto at = static_cast<double>(&row - kRows + 1);
      (row.predicts ? predicted : here).points.emplace_back(at, gap(row));
      if (row.published_gap > 0) published.points.emplace_back(at, row.published_gap);
      for (Series* series : {&published, &here, &predicted})
        series->points.emplace_back(at, study::kNever);  // dots without lines
    }
    chart.series = {published, here, predicted};
    return chart;
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
  const bool full = study::take_full(argc, argv);
  Scenario scenario("one-step-delay",
                    "Reproduce what gradients of one step ago cost AdamW, NAdam and Muon.");
  scenario
      .description(
          "A GPT of two layers and width 48 in two stages learns the King James Bible (apt-get\n"
          "install bible-kjv) under 1f1b, and under 2bw, whose gradients are one step old. Five\n"
          "optimizers, AdamW also with predicted weights, five learning rates on one seed for "
          "each,\n"
          "and the best of them on three others: 104 simulated runs with real gradients. 36 more\n"
          "train a GPT of 16 layers under weight stashing in 1 to 32 stages. An interrupted\n"
          "reproduction continues in the same folder (--out). --full has ten times the tokens and\n"
          "models that are four times as wide.")
      .decides({"--schedule", "--staleness", "--optimizer", "--lr", "--predict-weights",
                "--gradients", "--simulate"})
      .decides(study::kOfSingleRuns)
      .data(text(32))
      .model(gpt({.layers = 2, .width = full ? 192u : 48u, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(3e-3, 0.01))
      .lr_schedule(cosine(0))
      .stages(2)
      .micro_batches(4)
      .consistency(bsp())
      .shards(1)
      .batch(16)
      .epochs(full ? 0.5 : 0.05)
      .evaluate_every(0)
      .simulated({.speed = 5});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  Plan stashing = line.plan;  // evaluated more often, on fewer samples
  auto shared = study::share_data(line.plan, kTestSamples);
  if (shared) shared = study::share_data(stashing, kStashingTestSamples);
  if (!shared) return report.refuse(shared.error().text);
  auto all = study::stashing_subjects(stashing, full ? 64 : 16);
  for (const auto& subject : subjects(line.plan)) all.push_back(subject);
  study::TunedStudy study(line.plan.seed, all, measures(), line.options.quiet);
  const nlohmann::json settings{{"plan", to_json(line.plan)},
                                {"test_samples", {kTestSamples, kStashingTestSamples}},
                                {"target", study::stashing_target()}};
  return study.run(report, settings, [&] {
    const Tables tables(study);
    report.print(tables.table());
    report.print(tables.verdict());
    report.print(study::stashing_table(study));
    report.print(study::stashing_verdict(study));
    report.print(tables.seeds());
    report.print(study::stashing_seeds(study));
    auto charts = study::stashing_charts(study);
    charts.insert(charts.begin(), tables.chart());
    report.write(study::kPicture, svg(charts));
  });
}
