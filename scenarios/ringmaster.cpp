// ringmaster: which way to treat old gradients is fastest if workers differ by orders of magnitude?
//
// Reproduces, at the size of a machine with two cores, the experiment on a quadratic of Maranjyan,
// Tyurin and Richtarik, "Ringmaster ASGD: The First Asynchronous SGD with Optimal Time Complexity",
// ICML 2025, appendix G: worker i takes i + |N(0, i)| units of time for a gradient of a quadratic
// function with a tridiagonal matrix. There the gradients have Gaussian noise; here their noise
// comes from a mini-batch of the rows of D, with D'D the matrix. Each method has its own learning
// rate, tuned on another seed. So is the number of each method that has one.
#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <cmath>

#include "reproduction.hpp"
#include "tuned_study.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kSeeds;
using study::middle;
using study::Outcome;

namespace {

/// The size of the quadratic function, and the number of workers. The paper's are those of --full.
struct Sizes {
  std::int64_t numbers;
  std::uint32_t workers;

  /// Rows of a mini-batch: the same share of all, so that gradients have as much noise.
  std::uint32_t batch() const { return static_cast<std::uint32_t>((8 * numbers + 50) / 100); }
  /// Computations of a gradient, relative to those of the small function.
  double work() const {
    return static_cast<double>(batch()) * static_cast<double>(numbers) / (8 * 100);
  }
  /// The loss is a mean over the rows, so the largest stable rate is proportional to their number.
  std::vector<double> rates() const {
    std::vector<double> all = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4};
    for (double& rate : all) rate *= std::round(static_cast<double>(numbers) / 100);
    return all;
  }
};
constexpr Sizes kSmall{100, 2000}, kPublished{1729, 6174};
constexpr double kTarget = 0.02;  // loss; the first weights have about 2, the solution 0

/// The rows of a bidiagonal matrix D, and D times a solution: mean_squared_error over all rows is
/// the quadratic function with the matrix D'D = tridiagonal(-1, 2, -1), up to a factor.
class Differences final : public Dataset {
 public:
  Differences(std::int64_t size, std::uint64_t seed) : size_(size) {
    Rng rng(seed);
    std::vector<float> solution(static_cast<std::size_t>(size));
    for (float& one : solution) one = static_cast<float>(rng.normal());
    for (std::int64_t row = 0; row <= size; ++row) {
      const float before = row > 0 ? solution[static_cast<std::size_t>(row) - 1] : 0;
      const float at = row < size ? solution[static_cast<std::size_t>(row)] : 0;
      targets_.push_back(at - before);
    }
  }
  std::int64_t size() const override { return size_ + 1; }
  Shape sample_shape() const override { return Shape{size_}; }
  int classes() const override { return 0; }
  std::int64_t target_count() const override { return 1; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t*,
              float* targets) const override {
    std::fill_n(x, static_cast<std::int64_t>(samples.size()) * size_, 0.0f);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t row = samples[i];
      float* const values = x + static_cast<std::int64_t>(i) * size_;
      if (row > 0) values[row - 1] = -1;
      if (row < size_) values[row] = 1;
      if (targets) targets[i] = targets_[static_cast<std::size_t>(row)];
    }
  }

 private:
  const std::int64_t size_;
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

std::vector<study::Subject> subjects(const Plan& base, const std::vector<double>& rates) {
  std::vector<study::Subject> all;
  for (const Method& method : kMethods)
    all.push_back({method.name, rates, [&base, &method](double rate) {
                     Plan plan = base;
                     plan.consistency = method.consistency;
                     plan.delay_policy = method.delay(rate);
                     return plan;
                   }});
  return all;
}

study::Campaign::Figures figures_of(const Result& result) {
  study::Campaign::Figures figures{{"time", study::arrival_at(result, kTarget).seconds},
                                   {"loss", result.totals.evaluations.back().loss}};
  study::keep_losses(figures, result);
  return figures;
}
const study::Measures kMeasures{
    .of = figures_of, .failed = {{"time", kNever}, {"loss", kNever}}, .criteria = {"time", "loss"}};

class Tables {
 public:
  Tables(const study::TunedStudy& study, const Plan& plan) : study_(study), plan_(plan) {}

  std::string table() const {
    std::string table = concat(
        "\nVirtual seconds to a loss of ", kTarget, " with ", plan_.workers,
        " workers, median (min to max) of ", kSeeds,
        " seeds;\n\"tuned\" is the time on the tuning seed; * is the edge of the rates tried\n\n",
        cell(24, "method"), cell(28, "seconds"), cell(10, "tuned"), cell(12, "rate"));
    for (const Method& method : kMethods) {
      table += concat('\n', cell(24, method.name),
                      cell(28, study::median_text(times(method), study::time_text)),
                      cell(10, study::time_text(tuned_time(method))),
                      cell(12, study_.rate_text(method.name, "*")));
    }
    return table + '\n';
  }

  std::string comparison() const {
    const double limit = middle(times(best("delay_threshold")));
    const auto row = [&](const char* name, const char* published) {
      const double time = middle(times(best(name)));
      return study::Comparison{
          concat("time of ", best(name).name, " to ", best("delay_threshold").name), published,
          std::isfinite(time) && std::isfinite(limit) ? fixed(time / limit, 2)
                                                      : std::string("never")};
    };
    const study::Comparison rows[] = {row("delay_adaptive", "above 1"), row("asp", "-"),
                                      row("ssp", "-"), row("adaptive", "-")};
    return study::comparison_table(rows);
  }

  std::string verdict() const {
    const Method &limit = best("delay_threshold"), &adaptive = best("delay_adaptive");
    const auto with_limit = times(limit), with_adaptive = times(adaptive);
    const std::string published =
        concat("published: Ringmaster is faster than delay-adaptive asynchronous SGD; here ",
               limit.name, " takes ", study::time_text(middle(with_limit)), " s and ",
               adaptive.name, ' ', study::time_text(middle(with_adaptive)),
               " s, each with the number that was fastest on the tuning seed");
    if (with_limit.back() < with_adaptive.front())
      return study::verdict_line(Outcome::reproduced, published);
    if (with_adaptive.back() < with_limit.front())
      return study::verdict_line(Outcome::not_reproduced, published);
    return study::verdict_line(Outcome::null_result, published + ", less than seeds differ");
  }

  std::string seeds() const {
    std::vector<std::string> names;
    for (const Method& method : kMethods) names.push_back(method.name);
    return study_.seeds_table("Seconds to the target, of each seed", names, "time",
                              study::time_text);
  }

  std::vector<Chart> charts() const {
    Chart losses{.title = concat("Loss, seed ", plan_.seed),
                 .x_label = "virtual seconds",
                 .y_label = "loss",
                 .log_y = true};
    for (const char* name :
         {"delay_threshold", "delay_adaptive", "lag_scaled", "asp", "ssp", "adaptive"}) {
      const Method& method = best(name);
      Series series = study::losses_of(method.name, study_.runs(method.name).front());
      // After the last second, slow workers still push their gradients.
      std::erase_if(series.points, [&](const auto& at) { return at.first > plan_.stop.seconds; });
      losses.series.push_back(series);
    }
    return {losses};
  }

 private:
  std::vector<double> times(const Method& method) const {
    return study_.values(method.name, "time");
  }
  /// At the best rate, on the tuning seed.
  double tuned_time(const Method& method) const { return study_.tuning(method.name).at("time"); }
  /// Of the variants of a method, the one that was fastest on the tuning seed.
  const Method& best(std::string_view name) const {
    const Method* found = nullptr;
    for (const Method& method : kMethods)
      if (method.name.starts_with(name) && (!found || tuned_time(method) < tuned_time(*found)))
        found = &method;
    return *found;
  }

  const study::TunedStudy& study_;
  const Plan& plan_;
};

}  // namespace

int main(int argc, char** argv) {
  const Sizes sizes = study::take_full(argc, argv) ? kPublished : kSmall;
  Scenario scenario("ringmaster", "Reproduce how a limit of delays helps among unequal workers.");
  scenario
      .description(
          "2,000 simulated workers, the slowest 2,000 times as slow as the fastest, minimise a\n"
          "quadratic function of 100 numbers under ten ways to treat old gradients. Each runs "
          "with\n"
          "nine learning rates on one seed, and with the best of them on three others: 120 runs. "
          "An\n"
          "interrupted reproduction continues in the same folder (--out). --full has the paper's\n"
          "6,174 workers and 1,729 numbers.")
      .decides({"--staleness", "--delay-policy", "--lr", "--slow", "--simulate", "--gradients",
                "--optimizer", "--balance", "--split-data", "--participation"})
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
      .data(concat("differences of ", sizes.numbers),
            [size = sizes.numbers](std::uint64_t seed) -> Expected<TrainTest> {
              const auto rows = std::make_shared<const Differences>(size, seed);
              return TrainTest{rows, rows};
            })
      .model({plan::Linear{.outputs = 1, .init = plan::Init::zeros, .bias = false}})
      .loss(mean_squared_error())
      .optimizer(sgd(0.01))
      .whole_steps()
      .workers(sizes.workers)
      .shards(1)
      .batch(sizes.batch())
      .lease_size(sizes.batch())
      .epochs(0)
      .seconds(300)
      .evaluate_every(10)
      .simulated({.speed = 1e-5 * sizes.work()});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  add_stragglers(line.plan);
  study::Report report(line);
  study::TunedStudy study(line.plan.seed, subjects(line.plan, sizes.rates()), kMeasures,
                          line.options.quiet);
  return study.run(report, {{"plan", to_json(line.plan)}, {"target", kTarget}}, [&] {
    const Tables tables(study, line.plan);
    report.print(tables.table());
    report.print(tables.comparison());
    report.print(tables.verdict());
    report.print(tables.seeds());
    report.write(study::kPicture, svg(tables.charts(), {.columns = 1}));
  });
}
