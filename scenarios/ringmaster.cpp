// ringmaster: which way to treat old gradients is fastest if workers differ by orders of magnitude?
//
// Reproduces, at the size of a machine with two cores, the experiment on a quadratic of Maranjyan,
// Tyurin and Richtarik, "Ringmaster ASGD: The First Asynchronous SGD with Optimal Time Complexity",
// ICML 2025, appendix G: worker i takes i + |N(0, i)| units of time for a gradient of a quadratic
// function with a tridiagonal matrix. There the gradients have Gaussian noise; here their noise
// comes from a mini-batch of the rows of D, with D'D the matrix. Each method has its own learning
// rate, tuned on another seed.
#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "campaign.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr std::int64_t kSize = 100;  // of the quadratic function
constexpr double kTarget = 0.02;     // loss; the first weights have about 2, the solution 0
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kTuningSeed = 1000, kSeeds = 3;
const double kRates[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4};

/// The rows of a bidiagonal matrix D, and D times a solution: mean_squared_error over all rows is
/// the quadratic function with the matrix D'D = tridiagonal(-1, 2, -1), up to a factor.
class Differences final : public Dataset {
 public:
  explicit Differences(std::uint64_t seed) {
    Rng rng(seed);
    std::vector<float> solution(kSize);
    for (float& one : solution) one = static_cast<float>(rng.normal());
    for (std::int64_t row = 0; row <= kSize; ++row) {
      const float before = row > 0 ? solution[static_cast<std::size_t>(row) - 1] : 0;
      const float at = row < kSize ? solution[static_cast<std::size_t>(row)] : 0;
      targets_.push_back(at - before);
    }
  }
  std::int64_t size() const override { return kSize + 1; }
  Shape sample_shape() const override { return Shape{kSize}; }
  int classes() const override { return 0; }
  std::int64_t target_count() const override { return 1; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t*,
              float* targets) const override {
    std::fill_n(x, static_cast<std::int64_t>(samples.size()) * kSize, 0.0f);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t row = samples[i];
      float* const values = x + static_cast<std::int64_t>(i) * kSize;
      if (row > 0) values[row - 1] = -1;
      if (row < kSize) values[row] = 1;
      if (targets) targets[i] = targets_[static_cast<std::size_t>(row)];
    }
  }

 private:
  std::vector<float> targets_;
};

struct Method {
  std::string name;
  plan::Consistency consistency;
  /// The delay policy under this learning rate.
  plan::DelayPolicy (*delay)(double rate) = [](double) { return plan::DelayPolicy{}; };
};
const Method kMethods[] = {
    {"delay_threshold(3)", asp(), [](double) { return delay_threshold(3); }},
    {"delay_threshold(10)", asp(), [](double) { return delay_threshold(10); }},
    {"delay_threshold(30)", asp(), [](double) { return delay_threshold(30); }},
    {"delay_adaptive(3 lr)", asp(), [](double rate) { return delay_adaptive(3 * rate); }},
    {"delay_adaptive(10 lr)", asp(), [](double rate) { return delay_adaptive(10 * rate); }},
    {"delay_adaptive(30 lr)", asp(), [](double rate) { return delay_adaptive(30 * rate); }},
    {"lag_scaled(1)", asp(), [](double) { return lag_scaled(1); }},
    {"asp", asp()},
    {"ssp(100)", ssp(100)},
    {"adaptive(1,100)", adaptive(1, 100)},
};

/// Slows down each worker by its own function.
void add_stragglers(Plan& plan) {
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker) {
    const std::string name = concat("ringmaster ", worker);
    const double unit = worker + 1;
    register_straggler(name, [unit](std::int64_t, double, Rng& random) {
      return unit + std::abs(random.normal()) * std::sqrt(unit);
    });
    plan.stragglers.push_back(slow_by(worker, name));
  }
}

/// Virtual seconds until the loss is at the target, interpolated between evaluations.
double time_to_target(const Result& result) {
  double time = 0, loss = kNever;  // of the evaluation before
  for (const auto& evaluation : result.totals.evaluations) {
    const double now = (evaluation.now - Instant{}).seconds();
    if (evaluation.loss <= kTarget) {
      const double share = std::isinf(loss) ? 1
                                            : std::log(loss / kTarget) /
                                                  std::log(loss / std::max(evaluation.loss, 1e-30));
      return time + share * (now - time);
    }
    time = now;
    loss = evaluation.loss;
  }
  return kNever;
}

class Reproduction {
 public:
  Reproduction(Plan base, bool quiet)
      : base_(std::move(base)), campaign_(tuning().size() + std::size(kMethods) * kSeeds, quiet) {}

  std::vector<study::Named> plans_to_check() const { return tuning(); }

  /// Returns the exit code.
  int run(study::Report& report) {
    const nlohmann::json settings{{"plan", to_json(base_)}, {"target", kTarget}};
    if (const auto opened = campaign_.open(report, settings); !opened)
      return report.refuse(opened.error().text);
    if (const int code = run_all(tuning(), report)) return code;
    if (const int code = run_all(measured(), report)) return code;
    report.print(table());
    report.print(verdict());
    return report.end();
  }

 private:
  study::Named trial(const Method& method, double rate, std::uint64_t seed) const {
    Plan plan = base_;
    plan.consistency = method.consistency;
    plan.delay_policy = method.delay(rate);
    plan.optimizer.learning_rate = rate;
    plan.seed = seed;
    return {concat(method.name, ", rate ", rate, ", seed ", seed), plan};
  }
  std::vector<study::Named> tuning() const {
    std::vector<study::Named> trials;
    for (const Method& method : kMethods)
      for (const double rate : kRates)
        trials.push_back(trial(method, rate, base_.seed + kTuningSeed));
    return trials;
  }
  std::vector<study::Named> measured() const {
    std::vector<study::Named> trials;
    for (const Method& method : kMethods)
      for (std::uint64_t i = 0; i < kSeeds; ++i)
        trials.push_back(trial(method, tuned_rate(method), base_.seed + i));
    return trials;
  }
  int run_all(const std::vector<study::Named>& trials, study::Report& report) {
    return campaign_.run(
        trials,
        [](const Result& result) {
          return study::Campaign::Figures{{"time", time_to_target(result)},
                                          {"loss", result.totals.evaluations.back().loss}};
        },
        {{"time", kNever}, {"loss", kNever}}, report);
  }

  const study::Campaign::Figures& figures(const study::Named& trial) const {
    return campaign_.of(trial.name);
  }
  /// The rate that reaches the target first, or else has the least loss.
  double tuned_rate(const Method& method) const {
    return *std::ranges::min_element(kRates, {}, [&](double rate) {
      const auto& found = figures(trial(method, rate, base_.seed + kTuningSeed));
      return std::pair(found.at("time"), found.at("loss"));
    });
  }
  /// Of the seeds, ascending.
  std::vector<double> times(const Method& method) const {
    std::vector<double> all;
    for (std::uint64_t i = 0; i < kSeeds; ++i)
      all.push_back(figures(trial(method, tuned_rate(method), base_.seed + i)).at("time"));
    std::ranges::sort(all);
    return all;
  }
  double median(const Method& method) const { return times(method)[kSeeds / 2]; }

  std::string table() const {
    const auto text = [](double time) { return std::isinf(time) ? "never" : fixed(time, 2); };
    std::string table =
        concat("\nVirtual seconds to a loss of ", kTarget, ", median (min to max) of ", kSeeds,
               " seeds; * is the edge of the rates tried\n\n", cell(24, "method"),
               cell(28, "seconds"), cell(12, "rate"));
    for (const Method& method : kMethods) {
      const auto all = times(method);
      const double rate = tuned_rate(method);
      const bool edge = rate == std::begin(kRates)[0] || rate == std::end(kRates)[-1];
      table += concat('\n', cell(24, method.name),
                      cell(28, concat(text(all[kSeeds / 2]), " (", text(all.front()), " to ",
                                      text(all.back()), ')')),
                      cell(12, concat(rate, edge ? "*" : "")));
    }
    return table + '\n';
  }
  /// Of the variants of a method, the one with the least median.
  const Method& best(std::string_view name) const {
    const Method* found = nullptr;
    for (const Method& method : kMethods)
      if (method.name.starts_with(name) && (!found || median(method) < median(*found)))
        found = &method;
    return *found;
  }
  std::string verdict() const {
    const auto ringmaster = times(best("delay_threshold")),
               adaptive = times(best("delay_adaptive"));
    const auto middle = [](const std::vector<double>& all) { return all[kSeeds / 2]; };
    if (std::isinf(middle(ringmaster))) return "\nNo delay_threshold reaches the target.\n";
    const auto ratio = [&](double other) {
      return std::isinf(other)
                 ? std::string("never get there")
                 : concat("take ", fixed(other / middle(ringmaster), 2), " times as long");
    };
    std::string text = concat(
        "\nPublished: Ringmaster is faster than delay-adaptive asynchronous SGD. Here the runs "
        "with ",
        best("delay_adaptive").name, ' ', ratio(middle(adaptive)), " as those with ",
        best("delay_threshold").name, ", and those with plain asp ", ratio(median(best("asp"))),
        ".\n");
    if (ringmaster.back() < adaptive.front()) return text + "The published order is reproduced.\n";
    if (adaptive.back() < ringmaster.front())
      return text + "The published order is not reproduced.\n";
    return text + "A null result for the two: seeds differ by more.\n";
  }

  Plan base_;
  study::Campaign campaign_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("ringmaster", "Reproduce how a limit of delays helps among unequal workers.");
  scenario
      .description(
          "2,000 simulated workers, the slowest 2,000 times as slow as the fastest, minimise a\n"
          "quadratic function under ten ways to treat old gradients. Each runs with nine learning\n"
          "rates on one seed, and with the best of them on three others: 120 runs. An interrupted\n"
          "reproduction continues in the same folder (--out).")
      .decides({"--staleness", "--delay-policy", "--lr", "--slow", "--simulate", "--gradients",
                "--optimizer", "--balance", "--split-data", "--participation"})
      .decides(study::kOfPipelines)
      .decides(study::kOfClusters)
      .decides(study::kOfRunFolders)
      .decides(study::kOfCheckpoints)
      .data("differences",
            [](std::uint64_t seed) -> Expected<TrainTest> {
              const auto rows = std::make_shared<const Differences>(seed);
              return TrainTest{rows, rows};
            })
      .model({plan::Linear{.outputs = 1, .init = plan::Init::zeros, .bias = false}})
      .loss(mean_squared_error())
      .optimizer(sgd(0.01))
      .whole_steps()
      .workers(2000)
      .shards(1)
      .batch(8)
      .lease_size(8)
      .epochs(0)
      .seconds(300)
      .evaluate_every(10)
      .simulated({.speed = 1e-5});
  CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  if (!line.plan.simulated) line.plan.simulated = plan::World{};
  add_stragglers(line.plan);
  study::Report report(line);
  Reproduction reproduction(line.plan, line.options.quiet);
  const auto status = study::check(reproduction.plans_to_check());
  if (!status) return report.refuse(status.error().text);
  return reproduction.run(report);
}
