// async-local-sgd: does local SGD lose by asynchrony, and how much time does it save?
//
// Reproduces the toy task of Liu et al., "Asynchronous Local-SGD Training for Language Modeling",
// arXiv 2401.09135, 2024, as published in its notebook (github.com/google-deepmind/asyncdiloco,
// Apache License 2.0). Four workers of unequal speed take 20 local steps in each phase. The virtual
// times follow from their speeds and the grace window only, so they equal the published ones. The
// losses have other random numbers, and without --full a narrower network.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "campaign.hpp"
#include "gaussian_clusters.hpp"
#include "local_sgd_phases.hpp"
#include "reproduction.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kRoundSteps;
using study::PhaseSettings;
using study::PhaseTask;

namespace {

// The sizes of the notebook. Without --full, the large task has a narrower network.
constexpr std::int64_t kClustersPerClass = 8, kSamples = 128000, kTestSamples = 10000;
constexpr std::int64_t kWidth = 65000, kNarrow = 1024;
constexpr std::int64_t kSmallSamples = 4096, kSmallWidth = 128, kSmallPhases = 50;
constexpr std::int64_t kEqualPhases = 5;
constexpr double kGrace = 0.5, kLongGrace = 1000;  // seconds
/// The times are equal if they are when printed.
constexpr int kTimeDigits = 2;
/// A published loss is read from a picture.
constexpr double kNear = 0.05;

constexpr std::int64_t kPublishedPhases = 400;
const double kPublishedPhase = 66.60;
const double kPublishedTimes[] = {209.00, 406.40, 603.80, 801.40, 999.00};
/// Of both ways, with a long grace window.
const double kPublishedEqual[] = {1.391600, 1.357046, 1.325124, 1.307899, 1.300403, 1.298819};

/// A run of the large task.
struct Case {
  const char* name;
  bool asynchronous;
  plan::Optimizer outer;
  double published_loss, published_seconds;  // 0: there are none
};
const Case kCases[] = {
    {"momentum 0.9, synchronous", false, momentum(0.7, 0.9), 0.08, 26600},
    {"momentum 0.9, asynchronous", true, momentum(0.07, 0.9), 0.23, 8000},
    {"no momentum, synchronous", false, sgd(0.7), 0.64, 26600},
    {"no momentum, asynchronous", true, sgd(0.7), 0.23, 8000},
    {"nesterov 0.9, synchronous", false, nesterov(0.7, 0.9), 0, 0},
    {"nesterov 0.9, asynchronous", true, nesterov(0.07, 0.9), 0, 0},
};

/// Flags of settings that the published runs decide.
const std::vector<std::string> kFixed = {"--staleness",
                                         "--workers",
                                         "--shards",
                                         "--replicas",
                                         "--slow",
                                         "--fault",
                                         "--simulate",
                                         "--world",
                                         "--gradients",
                                         "--local-steps",
                                         "--outer-optimizer",
                                         "--outer-lr",
                                         "--merge",
                                         "--balance",
                                         "--split-data",
                                         "--participation",
                                         "--delay-policy",
                                         "--aggregate",
                                         "--batch",
                                         "--micro-batches",
                                         "--lease-size",
                                         "--prefetch",
                                         "--no-prefetch",
                                         "--compress",
                                         "--optimizer",
                                         "--lr",
                                         "--weight-decay",
                                         "--no-decay-on-biases",
                                         "--eight-bit-state",
                                         "--whole-steps",
                                         "--clip-norm",
                                         "--clip-value",
                                         "--lr-schedule",
                                         "--warmup",
                                         "--warmup-start",
                                         "--until-accuracy",
                                         "--augment",
                                         "--init",
                                         "--init-map",
                                         "--init-partial",
                                         "--freeze",
                                         "--precision",
                                         "--loss-scale",
                                         "--device",
                                         "--predict-weights",
                                         "--data",
                                         "--seconds",
                                         "--iterations",
                                         "--evaluate-every"};

struct Trial {
  std::string name;
  bool large = false;
  PhaseSettings settings;
};

std::string times_trial(bool asynchronous) {
  return asynchronous ? "small task, asynchronous" : "small task, synchronous";
}
std::string equal_trial(bool asynchronous) {
  return asynchronous ? "long grace window, asynchronous" : "long grace window, synchronous";
}

/// One evaluation of a trial.
struct Point {
  std::int64_t steps = 0;
  double seconds = 0, loss = 0, accuracy = 0;
};

// The figures of a trial have names such as "800 loss".
study::Campaign::Figures figures_of(const Result& result) {
  study::Campaign::Figures figures;
  for (const EvaluationResult& one : result.totals.evaluations) {
    const std::string steps = concat(one.samples_trained / study::kPhaseBatch);
    figures[steps + " seconds"] = (one.now - Instant{}).seconds();
    figures[steps + " loss"] = one.loss;
    figures[steps + " accuracy"] = one.accuracy;
  }
  return figures;
}

std::vector<Point> points_of(const study::Campaign::Figures& figures) {
  std::vector<Point> points;
  for (const auto& [name, seconds] : figures) {
    const auto space = name.find(' ');
    if (name.substr(space) != " seconds") continue;
    const std::string steps = name.substr(0, space);
    points.push_back(
        {std::stoll(steps), seconds, figures.at(steps + " loss"), figures.at(steps + " accuracy")});
  }
  std::ranges::sort(points, {}, &Point::steps);
  return points;
}

bool is_equal_time(double seconds, double published) {
  return fixed(seconds, kTimeDigits) == fixed(published, kTimeDigits);
}
std::string equal_text(bool equal) {
  return equal ? "equal" : "differs";
}

TrainTest large_data(std::uint64_t seed) {
  const auto all =
      std::make_shared<const study::GaussianClusters>(kClustersPerClass, kSamples, seed);
  return {all, std::make_shared<const study::DrawnSamples>(all, kTestSamples, seed)};
}

class Reproduction {
 public:
  Reproduction(Plan base, bool full, bool quiet)
      : base_(std::move(base)), full_(full), campaign_(trials().size(), quiet) {}

  /// Returns the exit code.
  int run(study::Report& report) {
    const nlohmann::json settings{{"plan", to_json(base_)}, {"full", full_}};
    if (const auto opened = campaign_.open(report, settings); !opened)
      return report.refuse(opened.error().text);
    std::vector<study::Named> all;
    for (const Trial& trial : trials()) all.push_back({trial.name, base_});
    const auto runner = [&](const study::Named& named) { return this->run(named.name); };
    if (const int code = campaign_.run(all, figures_of, {}, report, runner)) return code;
    report.print(times_table());
    report.print(equality_table());
    report.print(small_table());
    report.print(large_table());
    report.print(verdict());
    draw(report);
    return report.end();
  }

 private:
  std::int64_t width() const { return full_ ? kWidth : kNarrow; }
  std::int64_t phases() const {
    const double samples = base_.stop.epochs * static_cast<double>(kSamples);
    return std::max<std::int64_t>(1, std::llround(samples / (kRoundSteps * study::kPhaseBatch)));
  }

  std::vector<Trial> trials() const {
    std::vector<Trial> all;
    for (const Case& one : kCases)
      all.push_back({one.name,
                     true,
                     {.asynchronous = one.asynchronous,
                      .grace = kGrace,
                      .outer = one.outer,
                      .phases = phases(),
                      .seed = base_.seed}});
    for (const bool asynchronous : {false, true}) {
      all.push_back({times_trial(asynchronous),
                     false,
                     {.asynchronous = asynchronous,
                      .grace = kGrace,
                      .outer = momentum(1, 0.9),
                      .phases = kSmallPhases,
                      .seed = base_.seed}});
      all.push_back({equal_trial(asynchronous),
                     full_,
                     {.asynchronous = asynchronous,
                      .grace = kLongGrace,
                      .buffered = asynchronous,
                      .outer = sgd(0.5),
                      .phases = kEqualPhases,
                      .evaluate_every = 1,
                      .seed = base_.seed}});
    }
    for (Trial& trial : all)
      if (trial.settings.asynchronous) trial.settings.outer.whole_steps = true;
    return all;
  }
  Result run(const std::string& name) {
    const auto all = trials();
    const Trial& trial = *std::ranges::find(all, name, &Trial::name);
    std::call_once(has_tasks_, [&] { make_tasks(); });
    return study::run_phases(trial.large ? large_ : small_, trial.settings);
  }
  void make_tasks() {
    const TrainTest large = large_data(base_.seed);
    large_ = {large.train, large.test, base_.optimizer, width()};
    const auto small =
        std::make_shared<const study::GaussianClusters>(1, kSmallSamples, base_.seed);
    small_ = {small, small, base_.optimizer, kSmallWidth};
  }
  std::vector<Point> points(const std::string& trial) const {
    return points_of(campaign_.of(trial));
  }

  std::string times_table() const {
    std::string text =
        concat("\nVirtual seconds, which follow from the speeds and the grace window of ", kGrace,
               " s only\n\n", cell(28, ""), cell(11, "published"), cell(11, "here"),
               cell(11, "deviation"), cell(9, "verdict"));
    const auto row = [&](const std::string& name, double published, double here) {
      text +=
          concat('\n', cell(28, name), cell(11, fixed(published, kTimeDigits)),
                 cell(11, fixed(here, kTimeDigits)), cell(11, fixed(here - published, kTimeDigits)),
                 cell(9, equal_text(is_equal_time(here, published))));
    };
    row("a synchronous phase", kPublishedPhase, points(equal_trial(false))[1].seconds);
    const auto asynchronous = points(times_trial(true));
    for (std::size_t i = 0; i < std::size(kPublishedTimes); ++i)
      row(concat("asynchronous, step ", asynchronous[i + 1].steps), kPublishedTimes[i],
          asynchronous[i + 1].seconds);
    return text + '\n';
  }

  std::string equality_table() const {
    std::string text =
        concat("\nA grace window of ", kLongGrace, " s, longer than a phase: test loss of the ",
               full_ ? "large" : "small", " task\n\n", cell(6, "step"), cell(10, "seconds"),
               full_ ? cell(12, "published") : "", cell(14, "synchronous"),
               cell(14, "asynchronous"), cell(9, "verdict"));
    const auto one = points(equal_trial(false)), other = points(equal_trial(true));
    for (std::size_t i = 0; i < one.size(); ++i)
      text += concat('\n', cell(6, concat(one[i].steps)), cell(10, fixed(one[i].seconds, 2)),
                     full_ ? cell(12, fixed(kPublishedEqual[i], 6)) : "",
                     cell(14, fixed(one[i].loss, 6)), cell(14, fixed(other[i].loss, 6)),
                     cell(9, equal_text(one[i].loss == other[i].loss)));
    return text +
           "\n\nPublished: the two are equal. Here they are if all bits of the losses are.\n";
  }

  std::string small_table() const {
    std::string text =
        concat("\nThe small task after ", kSmallPhases,
               " phases, with momentum 0.9 and outer rate 1; published only as pictures\n\n",
               cell(28, ""), cell(10, "seconds"), cell(10, "loss"), cell(10, "accuracy"));
    for (const bool asynchronous : {false, true}) {
      const Point last = points(times_trial(asynchronous)).back();
      text += concat('\n', cell(28, times_trial(asynchronous)), cell(10, fixed(last.seconds, 0)),
                     cell(10, fixed(last.loss, 4)), cell(10, percent(last.accuracy)));
    }
    return text + '\n';
  }

  std::string large_table() const {
    std::string text = concat(
        "\nThe large task after ", phases(), " of ", kPublishedPhases,
        " published phases, with a hidden layer of ", grouped(static_cast<std::uint64_t>(width())),
        " of 65,000;\na loss within ", kNear, " of the published one is near\n\n", cell(28, ""),
        cell(12, "published s"), cell(8, "here"), cell(16, "published loss"), cell(8, "here"),
        cell(11, "deviation"), cell(9, "verdict"));
    for (const Case& one : kCases) {
      const Point last = points(one.name).back();
      const bool has_any = one.published_loss > 0;
      const double deviation = last.loss - one.published_loss;
      text += concat(
          '\n', cell(28, one.name),
          cell(12, has_any ? grouped(static_cast<std::uint64_t>(one.published_seconds)) : ""),
          cell(8, grouped(static_cast<std::uint64_t>(std::llround(last.seconds)))),
          cell(16, has_any ? fixed(one.published_loss, 2) : ""), cell(8, fixed(last.loss, 3)),
          cell(11, has_any ? fixed(deviation, 3) : ""),
          cell(9, !has_any                       ? ""
                  : std::abs(deviation) <= kNear ? "near"
                                                 : "differs"));
    }
    return text + '\n';
  }

  std::string verdict() const {
    const std::string exact =
        verdict_line(has_published_times(), "the virtual times, digit for digit") +
        verdict_line(has_equal_losses(),
                     "with a grace window longer than a phase, asynchronous equals synchronous");
    if (phases() < kPublishedPhases)
      return exact + "\nNo verdict on losses: the runs are shorter than the published ones.\n";
    const auto last = [&](std::size_t i) { return points(kCases[i].name).back().loss; };
    const auto losses = [&](std::size_t synchronous, std::size_t asynchronous) {
      return concat(" (", fixed(last(synchronous), 3), " and ", fixed(last(asynchronous), 3), ")");
    };
    return exact +
           verdict_line(
               last(0) < last(1),
               concat("with momentum, synchronous workers end at the lower loss", losses(0, 1))) +
           verdict_line(last(3) < last(2),
                        concat("without momentum, asynchronous workers do", losses(2, 3)));
  }
  static std::string verdict_line(bool reproduced, const std::string& what) {
    return study::verdict_line(
        reproduced ? study::Outcome::reproduced : study::Outcome::not_reproduced, what);
  }
  bool has_published_times() const {
    const auto asynchronous = points(times_trial(true));
    bool all = is_equal_time(points(equal_trial(false))[1].seconds, kPublishedPhase);
    for (std::size_t i = 0; i < std::size(kPublishedTimes); ++i)
      all = all && is_equal_time(asynchronous[i + 1].seconds, kPublishedTimes[i]);
    return all;
  }
  bool has_equal_losses() const {
    return std::ranges::equal(points(equal_trial(false)), points(equal_trial(true)), {},
                              &Point::loss, &Point::loss);
  }

  void draw(study::Report& report) const {
    std::vector<Chart> charts;
    const auto chart = [&](const std::string& title, const std::vector<std::string>& names) {
      Chart& one = charts.emplace_back(Chart{title, "virtual seconds", "test loss", {}, {}, false});
      for (const std::string& name : names) {
        Series& series = one.series.emplace_back();
        series.name = name;
        for (const Point& point : points(name))
          series.points.emplace_back(point.seconds, point.loss);
      }
    };
    chart("Large task, momentum 0.9", {kCases[0].name, kCases[1].name});
    chart("Large task, no momentum", {kCases[2].name, kCases[3].name});
    chart("Large task, nesterov 0.9", {kCases[4].name, kCases[5].name});
    chart("Small task, momentum 0.9", {times_trial(false), times_trial(true)});
    report.write(study::kPicture, svg(charts));
  }

  Plan base_;
  const bool full_;
  study::Campaign campaign_;
  std::once_flag has_tasks_;
  PhaseTask large_, small_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool full = study::take_full(argc, argv);
  const std::int64_t width = full ? kWidth : kNarrow;
  Scenario scenario("async-local-sgd",
                    "Reproduce what asynchrony saves and costs with local steps.");
  scenario
      .description(
          "Four simulated workers of unequal speed take 20 local steps per phase, synchronously "
          "or\n"
          "asynchronously, and classify clusters of 512 numbers, with a hidden layer of 1,024;\n"
          "with --full of 65,000 as published, which takes hours. An interrupted reproduction\n"
          "continues in the same folder (--out). --epochs 8 are the published 400 phases.")
      .decides(kFixed)
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
      .data("gaussian clusters",
            [](std::uint64_t seed) -> Expected<TrainTest> { return large_data(seed); })
      .model({linear(static_cast<std::uint32_t>(width)), relu(), linear(4)})
      .loss(softmax_cross_entropy())
      .optimizer(adamw(2e-4, 1e-3))
      .lr_schedule(cosine(0))
      .workers(std::size(study::kStepSeconds))
      .shards(1)
      .batch(study::kPhaseBatch)
      .epochs(8)
      .evaluate_every(0)
      .simulated({});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  Reproduction reproduction(line.plan, full, line.options.quiet);
  return reproduction.run(report);
}
