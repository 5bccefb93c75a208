// goodput: what share of their time do learners train while their chips are interrupted?
//
// Reproduces the simulated goodput of the Decoupled DiLoCo team, "Decoupled DiLoCo for Resilient
// Distributed Pre-training", arXiv 2604.21428, 2026: M learners of together N chips, each of which
// is interrupted once a year. A learner is down while it recovers, and the others go on. The time
// for which it is down is fitted to one published figure; the others are predictions. A second part
// trains a GPT with real gradients, to show what rounds of fewer learners cost.
#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

#include "campaign.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kSeeds;
using study::median_text;
using study::middle;

namespace {

constexpr std::int64_t kTestSamples = 512;
constexpr double kYear = 365 * 86400.0;
constexpr double kInterruptions = 200;  // in a run of the first part
/// Seconds for which a learner is down, to choose from.
const double kDownTimes[] = {20, 22, 24, 26, 28, 30, 32};
constexpr double kGraceMs = 100;  // a round of 24 local steps takes about 1 s

struct Case {
  double chips;
  std::uint32_t learners;
  double published;  // goodput

  /// Mean seconds between two interruptions of a learner.
  double uptime() const { return kYear / chips * learners; }
  std::string name() const {
    return concat(chips / 1e6, " million chips, ", learners,
                  learners == 1 ? " learner" : " learners");
  }
};
const Case kCases[] = {{1.2e6, 2, 0.70}, {1.2e6, 8, 0.88}, {1.2e6, 16, 0.93},
                       {2.4e6, 1, 0.18}, {2.4e6, 8, 0.80}, {2.4e6, 16, 0.86}};
const Case& kFitted = kCases[1];

constexpr std::uint32_t kLearners = 8;  // of the second part
const std::uint32_t kQuorums[] = {1, 2, 4, 8};
const plan::Merge kMerges[] = {plan::Merge::mean, plan::Merge::radial_directional};

class Reproduction {
 public:
  Reproduction(Plan base, bool quiet)
      : base_(std::move(base)),
        campaign_(fitting().size() + std::size(kCases) * kSeeds + losses().size(), quiet) {}

  std::vector<study::Named> plans_to_check() const {
    auto all = fitting();
    for (const auto& more : losses()) all.push_back(more);
    return all;
  }

  /// Returns the exit code.
  int run(study::Report& report) {
    const nlohmann::json settings{{"plan", to_json(base_)}, {"test_samples", kTestSamples}};
    if (const auto opened = campaign_.open(report, settings); !opened)
      return report.refuse(opened.error().text);
    if (const int code = run_all(fitting(), report)) return code;
    if (const int code = run_all(predictions(), report)) return code;
    if (const int code = run_all(losses(), report)) return code;
    report.print(goodput_table());
    report.print(loss_table());
    return report.end();
  }

 private:
  /// Without learning: a run of `one` with this seed, in which a learner is down for `down`
  /// seconds; 0: without interruptions.
  study::Named trial(const Case& one, double down, std::uint64_t seed) const {
    Plan plan = base_;
    plan.seed = seed;
    plan.workers = one.learners;
    plan.consistency = quorum(1, kGraceMs);
    plan.simulated->cost_only = true;
    plan.evaluate_every = 0;
    plan.lr_schedule = constant();
    const double most = plan.stop.seconds;
    plan.stop = {};
    plan.stop.epochs = 0;
    plan.stop.seconds = kInterruptions * one.uptime() / one.learners;
    if (most > 0) plan.stop.seconds = std::min(plan.stop.seconds, most);
    if (down > 0) interrupt(plan, one, down);
    return {down > 0 ? concat(one.name(), ", down ", down, " s, seed ", seed)
                     : concat(one.name(), ", without interruptions"),
            plan};
  }
  /// A Poisson process for each learner.
  static void interrupt(Plan& plan, const Case& one, double down) {
    for (std::uint32_t learner = 0; learner < one.learners; ++learner) {
      Rng rng(mix64(plan.seed * 1024 + learner));
      double now = -one.uptime() * std::log(1 - rng.uniform());
      while (now < plan.stop.seconds) {
        plan.faults.push_back(crashes(worker(learner), at_seconds(now), down));
        now += down - one.uptime() * std::log(1 - rng.uniform());
      }
    }
  }
  std::vector<study::Named> fitting() const {
    std::vector<study::Named> trials;
    for (const Case& one : kCases) trials.push_back(trial(one, 0, base_.seed));
    for (const double down : kDownTimes)
      trials.push_back(trial(kFitted, down, base_.seed + study::kTuningSeed));
    return trials;
  }
  std::vector<study::Named> predictions() const {
    std::vector<study::Named> trials;
    for (const Case& one : kCases)
      for (std::uint64_t i = 0; i < kSeeds; ++i)
        trials.push_back(trial(one, down_time(), base_.seed + i));
    return trials;
  }

  study::Named loss_trial(std::uint32_t count, plan::Merge merge, std::uint64_t seed) const {
    Plan plan = base_;
    plan.seed = seed;
    plan.workers = kLearners;
    plan.consistency = quorum(count, kGraceMs);
    plan.local_steps.merge = merge;
    plan.stop.seconds = 0;
    plan.stragglers = {slow_by_pareto(all_workers, 1.5, 20)};
    return {concat("K = ", count, ", ", text_of(merge), ", seed ", seed), plan};
  }
  std::vector<study::Named> losses() const {
    std::vector<study::Named> trials;
    for (const std::uint32_t count : kQuorums)
      for (const plan::Merge merge : kMerges)
        for (std::uint64_t i = 0; i < kSeeds; ++i)
          trials.push_back(loss_trial(count, merge, base_.seed + i));
    return trials;
  }
  static std::string text_of(plan::Merge merge) {
    return merge == plan::Merge::mean ? "mean" : "radial-directional";
  }

  int run_all(const std::vector<study::Named>& trials, study::Report& report) {
    return campaign_.run(
        trials,
        [](const Result& result) {
          const auto& evaluations = result.totals.evaluations;
          return study::Campaign::Figures{
              {"samples_per_second",
               static_cast<double>(result.samples_trained) / std::max(result.seconds, 1e-9)},
              {"seconds", result.seconds},
              {"dropped", static_cast<double>(result.dropped_pushes)},
              {"loss", evaluations.empty() ? kNever : evaluations.back().loss}};
        },
        {{"samples_per_second", 0}, {"seconds", kNever}, {"dropped", 0}, {"loss", kNever}}, report);
  }

  double figure(const study::Named& trial, const std::string& name) const {
    return campaign_.of(trial.name).at(name);
  }
  double goodput(const Case& one, double down, std::uint64_t seed) const {
    return figure(trial(one, down, seed), "samples_per_second") /
           figure(trial(one, 0, base_.seed), "samples_per_second");
  }
  /// The time with the published goodput of the fitted case.
  double down_time() const {
    return *std::ranges::min_element(kDownTimes, {}, [&](double down) {
      return std::abs(goodput(kFitted, down, base_.seed + study::kTuningSeed) - kFitted.published);
    });
  }
  /// Of the seeds, ascending.
  template <class Value>
  std::vector<double> of_seeds(Value value) const {
    std::vector<double> all;
    for (std::uint64_t i = 0; i < kSeeds; ++i) all.push_back(value(base_.seed + i));
    std::ranges::sort(all);
    return all;
  }

  std::string goodput_table() const {
    std::string text = concat(
        "\nGoodput: samples per second, of those without interruptions; each chip is "
        "interrupted once a year;\nmedian (min to max) of ",
        kSeeds, " seeds; a learner is down for ", down_time(), " s, fitted to ", kFitted.name(),
        "\n\n", cell(36, ""), cell(12, "published"), cell(24, "here"), cell(12, "difference"),
        cell(12, "renewals"));
    for (const Case& one : kCases) {
      const auto all =
          of_seeds([&](std::uint64_t seed) { return goodput(one, down_time(), seed); });
      text += concat('\n', cell(36, one.name()), cell(12, percent(one.published)),
                     cell(24, median_text(all, percent)),
                     cell(12, concat(fixed(100 * (middle(all) - one.published), 1), " points")),
                     cell(12, percent(one.uptime() / (one.uptime() + down_time()))));
    }
    return text +
           "\n\n\"renewals\" is uptime / (uptime + down time), without rounds and messages.\n";
  }

  std::string loss_table() const {
    std::string text = concat(
        "\nA GPT after equal tokens, with ", kLearners,
        " learners whose rounds have a heavy tail, by quorum K and merge;\nmedian (min to max) of ",
        kSeeds, " seeds\n\n", cell(4, "K"), cell(20, "merge"), cell(26, "test loss"),
        cell(18, "virtual seconds"), cell(16, "dropped pushes"));
    for (const std::uint32_t count : kQuorums)
      for (const plan::Merge merge : kMerges) {
        const auto values = [&](const char* name) {
          return of_seeds(
              [&](std::uint64_t seed) { return figure(loss_trial(count, merge, seed), name); });
        };
        const auto text_of_loss = [](double loss) { return fixed(loss, 3); };
        text += concat('\n', cell(4, concat(count)), cell(20, text_of(merge)),
                       cell(26, median_text(values("loss"), text_of_loss)),
                       cell(18, fixed(middle(values("seconds")), 1)),
                       cell(16, fixed(middle(values("dropped")), 0)));
      }
    return text + '\n';
  }

  Plan base_;
  study::Campaign campaign_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("goodput", "Reproduce how decoupled learners train on while chips fail.");
  scenario
      .description(
          "Up to 16 simulated learners take 24 local steps per round and are interrupted like 1.2\n"
          "or 2.4 million chips. Then eight learners train a GPT of one layer and width 32 on the\n"
          "King James Bible (apt-get install bible-kjv), in rounds of at least 1 to 8 learners.\n"
          "An interrupted reproduction continues in the same folder (--out). --seconds limits\n"
          "the virtual time of each run of the first part, --epochs the second part.")
      .decides({"--staleness", "--merge", "--workers", "--slow", "--fault", "--simulate",
                "--gradients", "--local-steps", "--balance", "--split-data", "--participation",
                "--delay-policy"})
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
      .data(text(32))
      .model(gpt({.layers = 1, .width = 32, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(3e-3, 0.01))
      .lr_schedule(cosine(0))
      .local_steps(diloco(24))
      .consistency(quorum(1, kGraceMs))
      .workers(kLearners)
      .shards(1)
      .batch(8)
      .epochs(0.25)
      .evaluate_every(0)
      .simulated({.speed = 1});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  auto status = study::share_data(line.plan, kTestSamples);
  if (!status) return report.refuse(status.error().text);
  Reproduction reproduction(line.plan, line.options.quiet);
  status = study::check(reproduction.plans_to_check());
  if (!status) return report.refuse(status.error().text);
  return reproduction.run(report);
}
