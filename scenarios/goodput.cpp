// goodput: what share of their time do learners train while their chips are interrupted?
//
// Reproduces the simulated goodput of the Decoupled DiLoCo team, "Decoupled DiLoCo for Resilient
// Distributed Pre-training", arXiv 2604.21428, 2026: M learners of together N chips, each of which
// is interrupted once a year. A learner is down while it recovers, and the others go on. The time
// for which it is down is fitted to one published figure; the others are predictions. Elastic data
// parallelism is bsp without local steps: a round waits for the live replicas only. A second part
// trains a GPT with real gradients, to show what rounds of fewer learners cost.
#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

#include "reproduction.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kSeeds;
using study::median_text;
using study::middle;
using study::Outcome;

namespace {

constexpr std::int64_t kTestSamples = 512;
constexpr double kYear = 365 * 86400.0;
/// In a run of the first part, and with --full.
constexpr double kInterruptions = 200, kFullInterruptions = 1000;
/// Seconds for which a learner is down, to choose from.
const double kDownTimes[] = {20, 22, 24, 26, 28, 30, 32};
constexpr double kGraceMs = 100;  // a round of 24 local steps takes about 1 s
constexpr double kTolerance = 3;  // points of goodput

struct Case {
  double chips;
  std::uint32_t learners;
  double published;      // goodput
  bool elastic = false;  // data parallelism of the live replicas

  /// Mean seconds between two interruptions of a learner.
  double uptime() const { return kYear / chips * learners; }
  std::string name() const {
    return concat(chips / 1e6, " million chips, ", elastic ? "elastic, " : "", learners,
                  elastic         ? " replicas"
                  : learners == 1 ? " learner"
                                  : " learners");
  }
};
const Case kCases[] = {{1.2e6, 2, 0.70}, {1.2e6, 8, 0.88},       {1.2e6, 16, 0.93},
                       {2.4e6, 1, 0.18}, {2.4e6, 8, 0.40, true}, {2.4e6, 8, 0.80},
                       {2.4e6, 16, 0.86}};
const Case& kFitted = kCases[1];

/// A learner or replica of fewer is so large that the time for which it is down may be another.
constexpr std::uint32_t kManyLearners = 8;
bool is_predicted(const Case& one) {
  return &one != &kFitted && !one.elastic && one.learners >= kManyLearners;
}

constexpr std::uint32_t kLearners = 8;  // of the second part
/// A row of the second table. The merge of directions trains with some quorums only, without
/// --full.
struct Round {
  std::uint32_t quorum;
  plan::Merge merge;
};
std::vector<Round> rounds(bool full) {
  std::vector<Round> all;
  for (std::uint32_t quorum = 1; quorum <= kLearners; ++quorum) {
    all.push_back({quorum, plan::Merge::mean});
    if (full || (quorum & (quorum - 1)) == 0)
      all.push_back({quorum, plan::Merge::radial_directional});
  }
  return all;
}

class Reproduction {
 public:
  Reproduction(Plan base, bool full, bool quiet)
      : base_(std::move(base)),
        rounds_(rounds(full)),
        interruptions_(full ? kFullInterruptions : kInterruptions),
        campaign_(fitting().size() + std::size(kCases) * kSeeds + losses().size(), quiet) {}

  std::vector<study::Named> plans_to_check() const {
    auto all = fitting();
    for (const auto& more : losses()) all.push_back(more);
    return all;
  }

  /// Returns the exit code.
  int run(study::Report& report) {
    const nlohmann::json settings{{"plan", to_json(base_)},
                                  {"test_samples", kTestSamples},
                                  {"methods", study::fingerprint(plans_to_check())}};
    if (const auto opened = campaign_.open(report, settings); !opened)
      return report.refuse(opened.error().text);
    if (const int code = run_all(fitting(), report)) return code;
    if (const int code = run_all(predictions(), report)) return code;
    if (const int code = run_all(losses(), report)) return code;
    report.print(goodput_table());
    report.print(goodput_verdict());
    report.print(loss_table());
    report.print(loss_verdict());
    report.print(seeds_table());
    report.write(study::kPicture, svg(charts(), {.columns = 2}));
    return report.end();
  }

 private:
  /// Without learning: a run of `one` with this seed, in which a learner is down for `down`
  /// seconds; 0: without interruptions.
  study::Named trial(const Case& one, double down, std::uint64_t seed) const {
    Plan plan = base_;
    plan.seed = seed;
    plan.workers = one.learners;
    plan.consistency = one.elastic ? bsp() : quorum(1, kGraceMs);
    if (one.elastic) plan.local_steps = {};
    plan.simulated->cost_only = true;
    plan.evaluate_every = 0;
    plan.lr_schedule = constant();
    const double most = plan.stop.seconds;
    plan.stop = {};
    plan.stop.epochs = 0;
    plan.stop.seconds = interruptions_ * one.uptime() / one.learners;
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

  study::Named loss_trial(const Round& round, std::uint64_t seed) const {
    Plan plan = base_;
    plan.seed = seed;
    plan.workers = kLearners;
    plan.consistency = quorum(round.quorum, kGraceMs);
    plan.local_steps.merge = round.merge;
    plan.stop.seconds = 0;
    plan.stragglers = {slow_by_pareto(all_workers, 1.5, 20)};
    return {concat(name_of(round), ", seed ", seed), plan};
  }
  std::vector<study::Named> losses() const {
    std::vector<study::Named> trials;
    for (const Round& round : rounds_)
      for (std::uint64_t i = 0; i < kSeeds; ++i)
        trials.push_back(loss_trial(round, base_.seed + i));
    return trials;
  }
  static std::string name_of(const Round& round) {
    return concat("K = ", round.quorum, ", ", text_of(round.merge));
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
  /// Of the seeds, in their order.
  template <class Value>
  std::vector<double> of_seeds(Value value) const {
    std::vector<double> all;
    for (std::uint64_t i = 0; i < kSeeds; ++i) all.push_back(value(base_.seed + i));
    return all;
  }
  static std::vector<double> ascending(std::vector<double> values) {
    std::ranges::sort(values);
    return values;
  }
  std::vector<double> goodputs(const Case& one) const {
    return of_seeds([&](std::uint64_t seed) { return goodput(one, down_time(), seed); });
  }
  std::vector<double> figures(const Round& round, const char* name) const {
    return of_seeds([&](std::uint64_t seed) { return figure(loss_trial(round, seed), name); });
  }
  /// Points of the median.
  double deviation(const Case& one) const {
    return 100 * (middle(ascending(goodputs(one))) - one.published);
  }
  double renewals(const Case& one) const { return one.uptime() / (one.uptime() + down_time()); }

  std::string goodput_table() const {
    std::string text = concat(
        "\nGoodput: samples per second, of those without interruptions; each chip is "
        "interrupted once a year;\nmedian (min to max) of ",
        kSeeds, " seeds; a learner is down for ", down_time(), " s, fitted to ", kFitted.name(),
        "\n\n", cell(42, ""), cell(11, "published"), cell(24, "here"), cell(13, "deviation"),
        cell(10, "renewals"));
    for (const Case& one : kCases)
      text += concat('\n', cell(42, one.name()), cell(11, percent(one.published)),
                     cell(24, median_text(ascending(goodputs(one)), percent)),
                     cell(13, concat(fixed(deviation(one), 1), " points")),
                     cell(10, one.elastic ? "" : percent(renewals(one))));
    return text +
           "\n\n\"renewals\" is uptime / (uptime + down time), without rounds and messages.\n";
  }
  std::string goodput_verdict() const {
    double most = 0, most_renewals = 0;
    for (const Case& one : kCases) {
      if (!is_predicted(one)) continue;
      most = std::max(most, std::abs(deviation(one)));
      most_renewals = std::max(most_renewals, 100 * std::abs(renewals(one) - one.published));
    }
    const auto off = [&](const Case& one) { return concat(fixed(deviation(one), 1), " points"); };
    return study::verdict_line(
               most <= kTolerance ? Outcome::reproduced : Outcome::not_reproduced,
               concat("with ", kManyLearners, " and more learners, predictions are within ",
                      fixed(most, 1), " points, the limit being ", kTolerance,
                      ", and renewals within ", fixed(most_renewals, 1))) +
           concat("\nOne learner deviates by ", off(kCases[3]), ", two by ", off(kCases[0]),
                  ": larger learners may be down for longer.\nElastic replicas deviate by ",
                  off(kCases[4]),
                  ": here the live ones go on at once; published ones stop to regroup.\n");
  }

  std::string loss_table() const {
    std::string text = concat(
        "\nA GPT after equal tokens, with ", kLearners,
        " learners whose rounds have a heavy tail, by quorum K and merge;\nmedian (min to max) of ",
        kSeeds, " seeds; \"change\" is to K = ", kLearners, ", published: level\n\n", cell(4, "K"),
        cell(20, "merge"), cell(26, "test loss"), cell(10, "change"), cell(18, "virtual seconds"),
        cell(16, "dropped pushes"));
    for (const Round& round : rounds_) {
      const auto losses = ascending(figures(round, "loss"));
      text += concat('\n', cell(4, concat(round.quorum)), cell(20, text_of(round.merge)),
                     cell(26, median_text(losses, loss_text)),
                     cell(10, fixed(middle(losses) - whole_loss(round.merge), 3)),
                     cell(18, fixed(middle(ascending(figures(round, "seconds"))), 1)),
                     cell(16, fixed(middle(ascending(figures(round, "dropped"))), 0)));
    }
    return text + '\n';
  }
  static std::string loss_text(double loss) { return fixed(loss, 3); }
  /// The median loss of rounds of all learners.
  double whole_loss(plan::Merge merge) const {
    return middle(ascending(figures({kLearners, merge}, "loss")));
  }
  /// Whether the smallest and the whole rounds differ by more than seeds, with the mean as merge.
  std::string loss_verdict() const {
    const auto one = ascending(figures({1, plan::Merge::mean}, "loss"));
    const auto all = ascending(figures({kLearners, plan::Merge::mean}, "loss"));
    const std::string losses = concat(loss_text(middle(one)), " with K = 1 and ",
                                      loss_text(middle(all)), " with K = ", kLearners);
    if (one.back() < all.front())
      return study::verdict_line(
          Outcome::not_reproduced,
          concat(
              "the loss is not level: small rounds, of which equal tokens are more, learn more, ",
              losses));
    if (all.back() < one.front())
      return study::verdict_line(
          Outcome::not_reproduced,
          concat("the loss is not level: small rounds learn less, ", losses));
    return study::verdict_line(
        Outcome::reproduced,
        concat(
            "the loss is level: the smallest and the whole rounds differ by less than seeds do, ",
            losses));
  }

  std::string seeds_table() const {
    std::string text = concat("\nOf each seed\n\n", cell(42, ""));
    for (std::uint64_t i = 0; i < kSeeds; ++i) text += cell(10, concat(base_.seed + i));
    const auto row = [&](const std::string& name, const std::vector<double>& values,
                         std::string (*text_of_value)(double)) {
      text += '\n' + cell(42, name);
      for (const double value : values) text += cell(10, text_of_value(value));
    };
    for (const Case& one : kCases) row(one.name(), goodputs(one), percent);
    for (const Round& round : rounds_) row(name_of(round), figures(round, "loss"), loss_text);
    return text + '\n';
  }

  std::vector<Chart> charts() const {
    std::vector<Chart> all;
    for (const double chips : {1.2e6, 2.4e6}) {
      Chart chart{.title = concat("Goodput of ", chips / 1e6, " million chips"),
                  .x_label = "learners",
                  .y_label = "goodput (%)"};
      study::Band here("here");
      Series published{.name = "published"}, elastic{.name = "elastic, published"},
          elastic_here{.name = "elastic, here"};
      for (const Case& one : kCases) {
        if (one.chips != chips) continue;
        (one.elastic ? elastic : published).points.emplace_back(one.learners, 100 * one.published);
        auto values = ascending(goodputs(one));
        for (double& value : values) value *= 100;
        if (one.elastic)
          elastic_here.points.emplace_back(one.learners, middle(values));
        else
          here.add(one.learners, values);
      }
      chart.series.push_back(published);
      here.append_to(chart);
      for (const Series& dot : {elastic, elastic_here})
        if (!dot.points.empty()) chart.series.push_back(dot);
      all.push_back(chart);
    }
    Chart loss{.title = "A GPT after equal tokens", .x_label = "quorum K", .y_label = "test loss"};
    Chart time{.title = "Its time", .x_label = "quorum K", .y_label = "virtual seconds"};
    for (const plan::Merge merge : {plan::Merge::mean, plan::Merge::radial_directional}) {
      study::Band losses(text_of(merge)), seconds(text_of(merge));
      for (const Round& round : rounds_) {
        if (round.merge != merge) continue;
        losses.add(round.quorum, ascending(figures(round, "loss")));
        seconds.add(round.quorum, ascending(figures(round, "seconds")));
      }
      losses.append_to(loss);
      seconds.append_to(time);
    }
    all.push_back(loss);
    all.push_back(time);
    return all;
  }

  Plan base_;
  const std::vector<Round> rounds_;
  const double interruptions_;
  study::Campaign campaign_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool full = study::take_full(argc, argv);
  Scenario scenario("goodput", "Reproduce how decoupled learners train on while chips fail.");
  scenario
      .description(
          "Up to 16 simulated learners take 24 local steps per round and are interrupted like 1.2\n"
          "or 2.4 million chips. Then eight learners train a GPT of one layer and width 32 on the\n"
          "King James Bible (apt-get install bible-kjv), in rounds of at least 1 to 8 learners.\n"
          "An interrupted reproduction continues in the same folder (--out). --seconds limits\n"
          "the virtual time of each run of the first part, --epochs the second part. --full has\n"
          "five times the interruptions, four times the tokens, and both merges for each quorum.")
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
      .epochs(full ? 1 : 0.25)
      .evaluate_every(0)
      .simulated({.speed = 1});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  auto status = study::share_data(line.plan, kTestSamples);
  if (!status) return report.refuse(status.error().text);
  Reproduction reproduction(line.plan, full, line.options.quiet);
  status = study::check(reproduction.plans_to_check());
  if (!status) return report.refuse(status.error().text);
  return reproduction.run(report);
}
