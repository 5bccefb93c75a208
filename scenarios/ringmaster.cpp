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

#include <cmath>

#include "tuned_study.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kSeeds;
using study::middle;

namespace {

constexpr std::int64_t kSize = 100;  // of the quadratic function
constexpr double kTarget = 0.02;     // loss; the first weights have about 2, the solution 0
const std::vector<double> kRates = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4};

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

std::vector<study::Subject> subjects(const Plan& base) {
  std::vector<study::Subject> all;
  for (const Method& method : kMethods)
    all.push_back({method.name, kRates, [&base, &method](double rate) {
                     Plan plan = base;
                     plan.consistency = method.consistency;
                     plan.delay_policy = method.delay(rate);
                     return plan;
                   }});
  return all;
}

study::Campaign::Figures figures_of(const Result& result) {
  return {{"time", study::arrival_at(result, kTarget).seconds},
          {"loss", result.totals.evaluations.back().loss}};
}
const study::Measures kMeasures{
    .of = figures_of, .failed = {{"time", kNever}, {"loss", kNever}}, .criteria = {"time", "loss"}};

class Tables {
 public:
  explicit Tables(const study::TunedStudy& study) : study_(study) {}

  std::string table() const {
    std::string table =
        concat("\nVirtual seconds to a loss of ", kTarget, ", median (min to max) of ", kSeeds,
               " seeds; * is the edge of the rates tried\n\n", cell(24, "method"),
               cell(28, "seconds"), cell(12, "rate"));
    for (const Method& method : kMethods) {
      table += concat('\n', cell(24, method.name),
                      cell(28, study::median_text(times(method), study::time_text)),
                      cell(12, study_.rate_text(method.name, "*")));
    }
    return table + '\n';
  }

  std::string verdict() const {
    const auto ringmaster = times(best("delay_threshold")),
               adaptive = times(best("delay_adaptive"));
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
        best("delay_threshold").name, ", and those with plain asp ",
        ratio(middle(times(best("asp")))), ".\n");
    if (ringmaster.back() < adaptive.front()) return text + "The published order is reproduced.\n";
    if (adaptive.back() < ringmaster.front())
      return text + "The published order is not reproduced.\n";
    return text + "A null result for the two: seeds differ by more.\n";
  }

 private:
  std::vector<double> times(const Method& method) const {
    return study_.values(method.name, "time");
  }
  /// Of the variants of a method, the one with the least median.
  const Method& best(std::string_view name) const {
    const Method* found = nullptr;
    for (const Method& method : kMethods)
      if (method.name.starts_with(name) &&
          (!found || middle(times(method)) < middle(times(*found))))
        found = &method;
    return *found;
  }

  const study::TunedStudy& study_;
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
      .decides(study::kOfSingleRuns)
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
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  add_stragglers(line.plan);
  study::Report report(line);
  study::TunedStudy study(line.plan.seed, subjects(line.plan), kMeasures, line.options.quiet);
  return study.run(report, {{"plan", to_json(line.plan)}, {"target", kTarget}}, [&] {
    const Tables tables(study);
    report.print(tables.table());
    report.print(tables.verdict());
  });
}
