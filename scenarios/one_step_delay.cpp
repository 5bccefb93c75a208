// one-step-delay: does an update by gradients that are one step old learn as well?
//
// Reproduces the comparison of Zmushko et al., "One-Step Gradient Delay Is Not a Barrier for
// Large-Scale Asynchronous Pipeline Parallel LLM Pretraining", ICML 2026, at the size of a machine
// with two cores: the same tokens, model and batches under 1f1b, which empties the pipeline after
// each update, and under 2bw (PipeDream-2BW), which never does, so that each gradient is computed
// on the weights before the last update. Each optimizer has its own learning rate for each
// schedule, tuned on another seed.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>

#include "campaign.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr std::int64_t kTestSamples = 512;
constexpr std::uint64_t kTuningSeed = 1000, kSeeds = 3;
constexpr double kDiverged = std::numeric_limits<double>::infinity();
/// The paper's gaps: final loss under 2bw minus that of synchronous training.
constexpr double kPublishedAdamW = 0.2, kPublishedMuon = 0.012;

struct Row {
  const char* name;
  plan::OptimizerKind kind;
  std::vector<double> rates;
  const char* published;
};
const Row kRows[] = {
    {"adamw, beta1 0.9", plan::AdamW{.beta1 = 0.9}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, "above 0.2"},
    {"adamw, beta1 0.95", plan::AdamW{.beta1 = 0.95}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, ""},
    {"adamw, beta1 0.99", plan::AdamW{.beta1 = 0.99}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, ""},
    {"nadam, beta1 0.99", plan::NAdam{.beta1 = 0.99}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, ""},
    {"muon", plan::Muon{}, {1e-3, 3e-3, 1e-2, 3e-2, 1e-1}, "0.012"},
};
/// The rows with published gaps.
const Row& kAdamW = kRows[0];
const Row& kMuon = std::end(kRows)[-1];
const char* const kSchedules[] = {"1f1b", "2bw"};

/// The final losses of the seeds of one row and schedule.
struct Losses {
  double rate = 0;
  std::vector<double> values;  // ascending
  double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
};

std::string text_of(const Losses& losses) {
  if (std::isinf(losses.mean())) return "diverged";
  return concat(fixed(losses.mean(), 3), " (", fixed(losses.values.front(), 3), " to ",
                fixed(losses.values.back(), 3), ")");
}

class Reproduction {
 public:
  Reproduction(Plan base, bool quiet)
      : base_(std::move(base)),
        campaign_(tuning().size() + std::size(kRows) * std::size(kSchedules) * kSeeds, quiet) {}

  std::vector<study::Named> plans_to_check() const { return tuning(); }

  /// Returns the exit code.
  int run(study::Report& report) {
    const nlohmann::json settings{{"plan", to_json(base_)}, {"test_samples", kTestSamples}};
    if (const auto opened = campaign_.open(report, settings); !opened)
      return report.refuse(opened.error().text);
    if (const int code = run_all(tuning(), report)) return code;
    if (const int code = run_all(measured(), report)) return code;
    report.print(table());
    report.print(verdict());
    return report.end();
  }

 private:
  study::Named trial(const Row& row, const char* schedule, double rate, std::uint64_t seed) const {
    Plan plan = base_;
    plan.optimizer.kind = row.kind;
    plan.optimizer.learning_rate = rate;
    plan.pipeline.schedule = schedule;
    plan.consistency = std::string_view(schedule) == "1f1b" ? bsp() : ssp(1);
    plan.seed = seed;
    return {concat(row.name, ", ", schedule, ", rate ", rate, ", seed ", seed), plan};
  }
  std::vector<study::Named> tuning() const {
    std::vector<study::Named> trials;
    for (const Row& row : kRows)
      for (const char* schedule : kSchedules)
        for (const double rate : row.rates)
          trials.push_back(trial(row, schedule, rate, base_.seed + kTuningSeed));
    return trials;
  }
  std::vector<study::Named> measured() const {
    std::vector<study::Named> trials;
    for (const Row& row : kRows)
      for (const char* schedule : kSchedules)
        for (std::uint64_t i = 0; i < kSeeds; ++i)
          trials.push_back(trial(row, schedule, tuned_rate(row, schedule), base_.seed + i));
    return trials;
  }
  int run_all(const std::vector<study::Named>& trials, study::Report& report) {
    return campaign_.run(
        trials,
        [](const Result& result) {
          return study::Campaign::Figures{{"loss", result.totals.evaluations.back().loss}};
        },
        {{"loss", kDiverged}}, report);
  }

  double loss_of(const study::Named& trial) const { return campaign_.of(trial.name).at("loss"); }
  double tuned_rate(const Row& row, const char* schedule) const {
    return *std::ranges::min_element(row.rates, {}, [&](double rate) {
      return loss_of(trial(row, schedule, rate, base_.seed + kTuningSeed));
    });
  }
  Losses losses(const Row& row, const char* schedule) const {
    Losses losses{.rate = tuned_rate(row, schedule), .values = {}};
    for (std::uint64_t i = 0; i < kSeeds; ++i)
      losses.values.push_back(loss_of(trial(row, schedule, losses.rate, base_.seed + i)));
    std::ranges::sort(losses.values);
    return losses;
  }
  double gap(const Row& row) const {
    return losses(row, "2bw").mean() - losses(row, "1f1b").mean();
  }

  std::string table() const {
    std::string text = concat("\nFinal test loss, mean (least to most) of ", kSeeds,
                              " seeds; * is the edge of the rates tried\n\n", cell(19, "optimizer"),
                              cell(26, "1f1b"), cell(26, "2bw"), cell(9, "gap"),
                              cell(12, "published"), cell(19, "rates"));
    for (const Row& row : kRows) {
      const Losses before = losses(row, "1f1b"), after = losses(row, "2bw");
      const auto rate_text = [&](double rate) {
        const bool edge = rate == row.rates.front() || rate == row.rates.back();
        return concat(rate, edge ? "*" : "");
      };
      text += concat('\n', cell(19, row.name), cell(26, text_of(before)), cell(26, text_of(after)),
                     cell(9, fixed(gap(row), 3)), cell(12, row.published),
                     cell(19, concat(rate_text(before.rate), ", ", rate_text(after.rate))));
    }
    return text + '\n';
  }
  std::string verdict() const {
    const double adamw = gap(kAdamW), muon = gap(kMuon);
    // The seeds of one cell differ by up to this much.
    double noise = 0;
    for (const Row* row : {&kAdamW, &kMuon})
      for (const char* schedule : kSchedules) {
        const Losses all = losses(*row, schedule);
        noise = std::max(noise, all.values.back() - all.values.front());
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

  Plan base_;
  study::Campaign campaign_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("one-step-delay",
                    "Reproduce what gradients of one step ago cost AdamW, NAdam and Muon.");
  scenario
      .description(
          "A GPT of two layers and width 48 in two stages learns the King James Bible (apt-get\n"
          "install bible-kjv) under 1f1b, and under 2bw, whose gradients are one step old. Five\n"
          "optimizers, five learning rates on one seed for each, and the best of them on three\n"
          "others: 80 simulated runs with real gradients. An interrupted reproduction continues "
          "in\n"
          "the same folder (--out). --epochs 0.5 has ten times the tokens.")
      .decides({"--schedule", "--staleness", "--optimizer", "--lr", "--gradients", "--simulate"})
      .decides(study::kOfClusters)
      .decides(study::kOfRunFolders)
      .decides(study::kOfCheckpoints)
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
  CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  if (!line.plan.simulated) line.plan.simulated = plan::World{};
  study::Report report(line);
  auto status = study::share_data(line.plan, kTestSamples);
  if (!status) return report.refuse(status.error().text);
  Reproduction reproduction(line.plan, line.options.quiet);
  status = study::check(reproduction.plans_to_check());
  if (!status) return report.refuse(status.error().text);
  return reproduction.run(report);
}
