// backup-workers: how many spare workers make synchronous training fastest?
//
// Reproduces, at the size of a machine with two cores, the comparison of Chen, Pan, Monga, Bengio
// and Jozefowicz, "Revisiting Distributed Synchronous SGD", ICLR 2016 workshop, arXiv 1604.00981,
// section 3: of 100 workers, each step uses the first N gradients and drops the last b. The paper
// trains Inception on ImageNet with N = 96 and b = 4.
//
// An iteration of a worker takes seconds drawn from a mixture. According to descriptions of the
// paper, 30% of the last gradients of 100 arrive within 2 s, and those of the third last in more
// than 80%. With independent
// workers, 1.2% of their iterations then exceed 2 s: 0.988^100 = 0.30. Those follow a Pareto
// distribution. The others are spread evenly below 2 s. The two numbers that shape them, and the
// exponent, are assumptions.
#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

#include "reproduction.hpp"
#include "tuned_study.hpp"

using namespace leeway;
using study::cell;
using study::kSeeds;
using study::Outcome;

namespace {

constexpr double kTarget = 0.55;  // test loss
constexpr std::int64_t kTestSamples = 2000;
const std::vector<double> kRates = {0.0125, 0.025, 0.05, 0.1, 0.2};
/// Below 2 s, for ordinary iterations; assumed.
constexpr double kLeast = 1.4, kMost = 1.8;
/// Slow iterations, of which a share exceeds t seconds of (kSlow / t)^2; the exponent is assumed.
constexpr double kSlow = 2, kLongest = 300, kSlowShare = 0.012;
/// Seconds of the computation that stragglers stretch: short, so that shards take next to no time.
constexpr double kComputed = 1e-3;
constexpr std::uint32_t kPublishedSpare = 4, kPublishedWorkers = 100;
/// Shares of iterations: the last gradient arrives within 2 s in this one, the third last in more
/// than that one.
constexpr double kPublishedLast = 0.30, kPublishedThirdLast = 0.80;

struct Method {
  std::string name;
  plan::Consistency consistency;
  std::uint32_t spare = 0;
};
const Method kMethods[] = {
    {"bsp", bsp()},
    {"backup(1)", backup(1), 1},
    {"backup(2)", backup(2), 2},
    {"backup(4)", backup(4), 4},
    {"backup(8)", backup(8), 8},
    {"backup(16)", backup(16), 16},
    {"backup(32)", backup(32), 32},
    {"asp", asp()},
};
constexpr std::uint32_t kMostSpare = 32;

bool is_synchronous(const Method& method) {
  return !std::holds_alternative<plan::Asp>(method.consistency);
}

/// Seconds of a worker's iteration.
double draw_latency(Rng& random) {
  const bool is_slow = random.uniform() < kSlowShare;
  const double uniform = random.uniform();  // below 1
  if (!is_slow) return kLeast + uniform * (kMost - kLeast);
  return std::min(kSlow / std::sqrt(1 - uniform), kLongest);
}

/// The probability that all but `late` of the workers are not slow.
double share_in_time(std::uint32_t workers, std::uint32_t late) {
  double term = std::pow(1 - kSlowShare, workers), sum = term;
  for (std::uint32_t i = 1; i <= late; ++i) {
    term *= kSlowShare / (1 - kSlowShare) * (workers - i + 1) / i;
    sum += term;
  }
  return sum;
}

std::vector<study::Subject> subjects(const Plan& base) {
  std::vector<study::Subject> all;
  for (const Method& method : kMethods)
    all.push_back({method.name, kRates, [&base, &method](double) {
                     Plan plan = base;
                     plan.consistency = method.consistency;
                     return plan;
                   }});
  return all;
}

study::Campaign::Figures figures_of(const Result& result) {
  const auto [seconds, samples] = study::arrival_at(result, kTarget);
  study::Campaign::Figures figures{
      {"seconds", seconds}, {"samples", samples}, {"loss", result.totals.evaluations.back().loss}};
  study::keep_losses(figures, result);
  return figures;
}
const study::Measures kMeasures{
    .of = figures_of,
    .failed = {{"seconds", study::kNever}, {"samples", study::kNever}, {"loss", study::kNever}},
    .criteria = {"seconds", "loss"}};

class Tables {
 public:
  Tables(const study::TunedStudy& study, const Plan& plan) : study_(study), plan_(plan) {}

  std::string table() const {
    std::string table =
        concat("\nTo a test loss of ", kTarget, " with ", plan_.workers,
               " workers, median (min to max) of ", kSeeds,
               " seeds; * is the edge of the rates tried; for asp, ", plan_.workers,
               " gradients count as an iteration\n\n", cell(12, "method"), cell(14, "s/iteration"),
               cell(22, "iterations"), cell(28, "seconds"), cell(9, "rate"), cell(12, "published"));
    for (const Method& method : kMethods) {
      const auto seconds = study_.values(method.name, "seconds");
      const auto steps = iterations(method);
      table += concat(
          '\n', cell(12, method.name), cell(14, study::time_text(step_time(method))),
          cell(22, study::median_text(steps, count_text)),
          cell(28, study::median_text(seconds, study::time_text)),
          cell(9, study_.rate_text(method.name, "*")),
          cell(12, method.spare == kPublishedSpare && plan_.workers == kPublishedWorkers ? "fastest"
                                                                                         : ""));
    }
    return table + '\n';
  }

  std::string comparison() const {
    const auto points = [](double here, double there) {
      return concat(fixed(100 * (here - there), 1), " points");
    };
    const double last = share_in_time(plan_.workers, 0), third = share_in_time(plan_.workers, 2);
    const int off = static_cast<int>(best().spare) - static_cast<int>(kPublishedSpare);
    const bool reached = std::isfinite(median(best()));
    const study::Comparison rows[] = {
        {"last gradient within 2 s (fitted for 100 workers)", percent(kPublishedLast),
         percent(last), points(last, kPublishedLast)},
        {"third last gradient within 2 s", concat("above ", percent(kPublishedThirdLast)),
         percent(third), points(third, kPublishedThirdLast)},
        {"fastest number of spare workers", concat(kPublishedSpare),
         reached ? concat(best().spare) : "never", reached ? concat(off > 0 ? "+" : "", off) : ""},
        {concat("time of ", expected().name, " to the fastest"), "1",
         ratio_text(median(expected()) / median(best())), ""},
        {"time of bsp to the fastest", "above 1", ratio_text(median(kMethods[0]) / median(best())),
         ""},
        {"time of asp to the fastest", "above 1", ratio_text(median(async()) / median(best())), ""},
    };
    return study::comparison_table(rows);
  }

  std::string verdict() const {
    if (std::isinf(median(best())))
      return study::verdict_line(Outcome::null_result, "no synchronous run reaches the target");
    const Method& most = *std::ranges::find(kMethods, kMostSpare, &Method::spare);
    const bool is_inner = best().spare > 0 && best().spare < kMostSpare;
    const std::string near =
        &expected() == &best() ? concat(kPublishedSpare, " spare workers are fastest, as published")
        : are_apart(expected(), best())
            ? concat(best().name, " is faster than the published number of ", kPublishedSpare)
            : concat(expected().name, " and the fastest, ", best().name,
                     ", differ by less than seeds do");
    std::string text =
        !is_inner ? study::verdict_line(
                        Outcome::not_reproduced,
                        concat("no number between none and the most is fastest, but ", best().name))
        : are_apart(kMethods[0], best()) && are_apart(most, best())
            ? study::verdict_line(Outcome::reproduced,
                                  concat("a number between none and the most is fastest; ", near))
            : study::verdict_line(
                  Outcome::null_result,
                  concat("the number between none and the most that is fastest gains less than "
                         "seeds differ; ",
                         near));
    return text + (are_apart(async(), best())
                       ? study::verdict_line(Outcome::reproduced, "asynchronous training is slower")
                   : are_apart(best(), async())
                       ? study::verdict_line(Outcome::not_reproduced,
                                             "asynchronous training is faster here")
                       : study::verdict_line(Outcome::null_result,
                                             "synchronous and asynchronous training differ by "
                                             "less than seeds do"));
  }

  std::string seeds() const {
    std::vector<std::string> names;
    for (const Method& method : kMethods) names.push_back(method.name);
    return study_.seeds_table("Seconds to the target, of each seed", names, "seconds",
                              study::time_text);
  }

  std::vector<Chart> charts() const {
    Chart times{.title = concat("To a test loss of ", kTarget),
                .x_label = "spare workers",
                .y_label = "virtual seconds"};
    study::Band band("backup, and bsp with 0");
    Chart losses{
        .title = concat("Seed ", plan_.seed), .x_label = "virtual seconds", .y_label = "test loss"};
    for (const Method& method : kMethods) {
      if (is_synchronous(method)) band.add(method.spare, study_.values(method.name, "seconds"));
      losses.series.push_back(study::losses_of(method.name, study_.runs(method.name).front()));
    }
    band.append_to(times);
    const double asp = median(async());
    times.series.push_back({"asp", {{0, asp}, {kMostSpare, asp}}});
    return {times, losses};
  }

 private:
  double median(const Method& method) const { return study_.median(method.name, "seconds"); }
  /// The synchronous method with the least median.
  const Method& best() const {
    return *std::ranges::min_element(kMethods, {}, [&](const Method& method) {
      return is_synchronous(method) ? median(method) : study::kNever;
    });
  }
  static const Method& expected() {
    return *std::ranges::find(kMethods, kPublishedSpare, &Method::spare);
  }
  static const Method& async() { return std::end(kMethods)[-1]; }
  static std::string ratio_text(double ratio) {
    return std::isfinite(ratio) ? fixed(ratio, 2) : "never";
  }
  /// Whether all seeds of `slow` take longer than all of `fast`.
  bool are_apart(const Method& slow, const Method& fast) const {
    return study_.values(slow.name, "seconds").front() > study_.values(fast.name, "seconds").back();
  }
  double samples_of_iteration(const Method& method) const {
    return static_cast<double>(plan_.workers - method.spare) * plan_.batch;
  }
  /// Of the seeds, ascending.
  std::vector<double> iterations(const Method& method) const {
    auto all = study_.values(method.name, "samples");
    for (double& one : all) one /= samples_of_iteration(method);
    return all;
  }
  /// Mean over the seeds.
  double step_time(const Method& method) const {
    double seconds = 0, steps = 0;
    for (const auto& figures : study_.runs(method.name)) {
      seconds += figures.at("seconds");
      steps += figures.at("samples") / samples_of_iteration(method);
    }
    return std::isinf(seconds) ? study::kNever : seconds / steps;
  }
  static std::string count_text(double count) {
    return std::isinf(count) ? "never" : fixed(count, 0);
  }

  const study::TunedStudy& study_;
  const Plan& plan_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool full = study::take_full(argc, argv);
  Scenario scenario("backup-workers", "Reproduce how many spare workers are best for rounds.");
  const std::vector<plan::Layer> small{avg_pool(2), flatten(), linear(32), relu(), linear(10)};
  const std::uint32_t batch = full ? 8 : 2;
  scenario
      .description(
          "100 simulated workers with a tail of slow iterations learn Fashion-MNIST under bsp,\n"
          "under backup(1) to backup(32), which drop the last gradients of each round, and under\n"
          "asp. Each runs with five learning rates on one seed, and with the best of them on "
          "three\n"
          "others: 64 runs. An interrupted reproduction continues in the same folder (--out).\n"
          "--full has a network of 101,770 weights instead of 6,634, and 8 images for each\n"
          "gradient instead of 2.")
      .decides({"--staleness", "--delay-policy", "--lr", "--slow", "--simulate", "--gradients",
                "--optimizer", "--balance", "--split-data", "--participation", "--whole-steps",
                "--local-steps", "--outer-optimizer", "--outer-lr", "--merge"})
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
      .data(fashion_mnist())
      .model(full ? mlp({128}, 10) : small)
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.1))
      .workers(kPublishedWorkers)
      .shards(1)
      .batch(batch)
      .lease_size(batch)
      .epochs(full ? 3.6 : 0.9)
      .evaluate_every(full ? 0.4 : 0.1)
      .simulated({.noise = 0});
  register_straggler("latency", [](std::int64_t, double, Rng& random) {
    return draw_latency(random) / kComputed;
  });
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  if (line.plan.workers <= kMostSpare)
    return report.refuse(concat("--workers: backup(", kMostSpare, ") needs more than ",
                                line.plan.workers, "; give --workers ", kMostSpare + 1,
                                " or more"));
  auto ready = study::share_data(line.plan, kTestSamples);
  if (ready) ready = study::set_iteration_time(line.plan, kComputed);
  if (!ready) return report.refuse(ready.error().text);
  line.plan.stragglers.push_back(slow_by(all_workers, "latency"));
  study::TunedStudy study(line.plan.seed, subjects(line.plan), kMeasures, line.options.quiet);
  const nlohmann::json settings{
      {"plan", to_json(line.plan)}, {"target", kTarget}, {"test_samples", kTestSamples}};
  return study.run(report, settings, [&] {
    const Tables tables(study, line.plan);
    report.print(tables.table());
    report.print(tables.comparison());
    report.print(tables.verdict());
    report.print(tables.seeds());
    report.write(study::kPicture, svg(tables.charts()));
  });
}
