// staleness-atlas: which way of keeping workers together learns fastest in which world.
//
// Each method runs with each optimizer in each world, with a learning rate tuned for this
// combination on other seeds than those that count. Times are simulated, gradients are real.
// Finished runs are kept in the folder, so that an interrupted atlas continues.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

#include "heat_map.hpp"
#include "tuned_study.hpp"
#include "worlds.hpp"

using namespace leeway;
using study::cell;
using study::kNever;
using study::kSeeds;
using study::kWorlds;
using study::time_text;

namespace {

constexpr double kTarget = 0.85;  // test accuracy
constexpr std::int64_t kTestSamples = 2000;

struct TunedOptimizer {
  std::string name;
  plan::OptimizerKind kind;
  std::vector<double> rates;
};
const TunedOptimizer kTunedOptimizers[] = {
    {"sgd", plan::Sgd{}, {0.05, 0.1, 0.2, 0.4, 0.8}},
    {"momentum", plan::Momentum{}, {0.005, 0.01, 0.02, 0.04, 0.08}},
};

struct Method {
  std::string name;
  plan::Consistency consistency;
  plan::Balance balance = plan::Balance::equal;
  /// The delay policy under this learning rate.
  plan::DelayPolicy (*delay)(double rate) = [](double) { return plan::DelayPolicy{}; };
  bool synchronous = false;
  bool only_momentum = false;
  plan::LocalSteps local = {};
  bool whole_steps = false;
};
const Method kMethods[] = {
    {.name = "bsp", .consistency = bsp(), .synchronous = true},
    {.name = "bsp, by speed",
     .consistency = bsp(),
     .balance = plan::Balance::by_speed,
     .synchronous = true},
    {.name = "backup(1)", .consistency = backup(1), .synchronous = true},
    {.name = "backup(2)", .consistency = backup(2), .synchronous = true},
    {.name = "backup(1), by speed",
     .consistency = backup(1),
     .balance = plan::Balance::by_speed,
     .synchronous = true},
    {.name = "ssp(3)", .consistency = ssp(3)},
    {.name = "ssp(3), by speed", .consistency = ssp(3), .balance = plan::Balance::by_speed},
    {.name = "adaptive(1,8)", .consistency = adaptive(1, 8)},
    {.name = "asp", .consistency = asp()},
    {.name = "asp, by speed", .consistency = asp(), .balance = plan::Balance::by_speed},
    {.name = "asp, lag_scaled(1)",
     .consistency = asp(),
     .delay = [](double) { return lag_scaled(1); }},
    {.name = "asp, delay_adaptive(2 lr)",
     .consistency = asp(),
     .delay = [](double rate) { return delay_adaptive(2 * rate); }},
    {.name = "asp, gap_aware", .consistency = asp(), .delay = [](double) { return gap_aware(); }},
    {.name = "asp, delay_compensated(0.04)",
     .consistency = asp(),
     .delay = [](double) { return delay_compensated(); }},
    {.name = "asp, delay_compensated(2,0.95)",
     .consistency = asp(),
     .delay = [](double) { return adaptive_delay_compensated(); }},
    {.name = "asp, ordered_momentum",
     .consistency = asp(),
     .delay = [](double) { return ordered_momentum(); },
     .only_momentum = true},
    {.name = "asp, ordered_momentum, by speed",
     .consistency = asp(),
     .balance = plan::Balance::by_speed,
     .delay = [](double) { return ordered_momentum(); },
     .only_momentum = true},
    {.name = "auto", .consistency = automatic()},
    {.name = "bsp, local_sgd(4)", .consistency = bsp(), .local = local_sgd(4)},
    {.name = "bsp, diloco(4)", .consistency = bsp(), .local = diloco(4)},
    {.name = "asp, local_sgd(4)", .consistency = asp(), .local = local_sgd(4)},
    {.name = "asp, local_sgd(16)", .consistency = asp(), .local = local_sgd(16)},
    {.name = "asp, delayed_nesterov, 4 steps",
     .consistency = asp(),
     .local = {4, {0.1, plan::DelayedNesterov{}}}},
    {.name = "asp, fed_async, 4 steps",
     .consistency = asp(),
     .delay = [](double) { return fed_async(); },
     .local = local_sgd(4),
     .whole_steps = true},
    {.name = "asp, fed_buff(4), 4 steps",
     .consistency = asp(),
     .delay = [](double) { return fed_buff(); },
     .local = local_sgd(4)},
    {.name = "asp, delay_threshold(2)",
     .consistency = asp(),
     .delay = [](double) { return delay_threshold(2); }},
};

constexpr std::size_t kBsp = 0;  // of kMethods
const std::size_t kAuto = static_cast<std::size_t>(
    std::ranges::find(kMethods, std::string("auto"), &Method::name) - kMethods);

/// Whether a worker may be ahead of another one.
bool is_asynchronous(const Method& method) {
  return !std::holds_alternative<plan::Bsp>(method.consistency) &&
         !std::holds_alternative<plan::Backup>(method.consistency);
}

/// The figures of a run.
struct Outcome {
  double to_target = kNever;          // virtual seconds, interpolated between evaluations
  double samples_to_target = kNever;  // samples trained until then
  double loss = 0;                    // of the final weights
  double accuracy = 0;
  double samples_per_second = 0;  // if no worker waited
};

Outcome outcome_of(const Result& result) {
  Outcome outcome{.accuracy = result.test_accuracy};
  for (const auto& worker : result.totals.workers)
    outcome.samples_per_second +=
        static_cast<double>(worker.samples) / std::max(worker.compute.seconds(), 1e-9);
  double time = 0, samples = 0, accuracy = 0;  // of the evaluation before
  for (const auto& evaluation : result.totals.evaluations) {
    const double now = (evaluation.now - Instant{}).seconds();
    const auto trained = static_cast<double>(evaluation.samples_trained);
    if (outcome.to_target == kNever && evaluation.accuracy >= kTarget) {
      const double share = (kTarget - accuracy) / std::max(evaluation.accuracy - accuracy, 1e-9);
      outcome.to_target = time + share * (now - time);
      outcome.samples_to_target = samples + share * (trained - samples);
    }
    time = now;
    samples = trained;
    accuracy = evaluation.accuracy;
    outcome.loss = evaluation.loss;
  }
  return outcome;
}

/// One combination of the table.
struct Place {
  std::size_t optimizer, world, method;

  std::string name() const {
    return concat(kTunedOptimizers[optimizer].name, ", ", kWorlds[world].name, ", ",
                  kMethods[method].name);
  }
  Plan plan(const Plan& base, double rate) const {
    const Method& of = kMethods[method];
    Plan plan = base;
    plan.optimizer.kind = kTunedOptimizers[optimizer].kind;
    plan.consistency = of.consistency;
    plan.balance = of.balance;
    plan.delay_policy = of.delay(rate);
    plan.local_steps = of.local;
    plan.optimizer.whole_steps = of.whole_steps;
    if (of.local.count > 0) plan.lease_size = 0;  // an iteration
    kWorlds[world].add(plan);
    return plan;
  }
};

study::Campaign::Figures figures_of(const Outcome& outcome) {
  return {{"to_target", outcome.to_target},
          {"samples_to_target", outcome.samples_to_target},
          {"loss", outcome.loss},
          {"accuracy", outcome.accuracy},
          {"samples_per_second", outcome.samples_per_second}};
}

/// The methods with this optimizer, as indices.
std::vector<std::size_t> methods_of(std::size_t optimizer) {
  const bool has_momentum =
      std::holds_alternative<plan::Momentum>(kTunedOptimizers[optimizer].kind);
  std::vector<std::size_t> methods;
  for (std::size_t method = 0; method < std::size(kMethods); ++method)
    if (!kMethods[method].only_momentum || has_momentum) methods.push_back(method);
  return methods;
}

std::vector<study::Subject> subjects(const Plan& base) {
  std::vector<study::Subject> all;
  for (std::size_t optimizer = 0; optimizer < std::size(kTunedOptimizers); ++optimizer)
    for (std::size_t world = 0; world < std::size(kWorlds); ++world)
      for (const std::size_t method : methods_of(optimizer)) {
        const Place place{optimizer, world, method};
        all.push_back({place.name(), kTunedOptimizers[optimizer].rates,
                       [&base, place](double rate) { return place.plan(base, rate); }});
      }
  return all;
}

const study::Measures kMeasures{
    .of = [](const Result& result) { return figures_of(outcome_of(result)); },
    .failed = figures_of({.loss = kNever}),
    .criteria = {"to_target", "loss"}};

class Tables {
 public:
  explicit Tables(const study::TunedStudy& study) : study_(study) {}

  std::string table_of(std::size_t optimizer) const {
    std::string table =
        concat('\n', kTunedOptimizers[optimizer].name, ": virtual seconds to ",
               fixed(100 * kTarget, 0), "%, median (min to max) of ", kSeeds,
               " seeds; * is the best; rate tuned for each\n\n", cell(31, "method"));
    for (const auto& world : kWorlds) table += cell(24, world.short_name);
    table += '\n';
    for (const std::size_t method : methods_of(optimizer)) {
      table += cell(31, kMethods[method].name);
      for (std::size_t world = 0; world < std::size(kWorlds); ++world) {
        const auto all = study_.values(Place{optimizer, world, method}.name(), "to_target");
        const double median = study::middle(all);
        const bool best = median != kNever && median == best_time(optimizer, world, false);
        table += cell(
            24, concat(time_text(median), best ? "*" : "", ' ', study::range_text(all, time_text)));
      }
      table += '\n';
    }
    const auto row = [&](const std::string& name, const auto& value_of) {
      table += cell(31, name);
      for (std::size_t world = 0; world < std::size(kWorlds); ++world)
        table += cell(24, value_of(world));
      table += '\n';
    };
    row("best / best with rounds", [&](std::size_t world) {
      return ratio_text(best_time(optimizer, world, false) / best_time(optimizer, world, true));
    });
    row("fewest samples, no waits",
        [&](std::size_t world) { return ratio_text(without_waiting(optimizer, world)); });
    row("best / no waits", [&](std::size_t world) {
      return ratio_text(best_time(optimizer, world, false) / without_waiting(optimizer, world));
    });
    row("auto / best", [&](std::size_t world) {
      return ratio_text(median_time({optimizer, world, kAuto}) /
                        best_time(optimizer, world, false));
    });
    const auto part = [&](const std::string& title, const auto& value_of) {
      table += '\n' + cell(31, title);
      for (const auto& world : kWorlds) table += cell(24, world.short_name);
      table += '\n';
      for (const std::size_t method : methods_of(optimizer))
        row(kMethods[method].name, [&](std::size_t world) {
          return value_of(Place{optimizer, world, method});
        });
    };
    part("time of bsp / time", [&](const Place& place) { return ratio_text(speed_up(place)); });
    part("rate (! edge); accuracy; loss", [&](const Place& place) {
      return concat(study_.rate_text(place.name(), "!"), "; ",
                    percent(study_.median(place.name(), "accuracy")), "; ",
                    study::loss_text(study_.median(place.name(), "loss")));
    });
    return table;
  }

  /// The methods without rounds that take longer to the target than bsp.
  std::string losses_of_asynchrony(std::size_t optimizer) const {
    std::string text = concat('\n', kTunedOptimizers[optimizer].name,
                              ": asynchrony loses in these cases (time of bsp / time; ~: by less "
                              "than seeds differ)\n\n");
    for (std::size_t world = 0; world < std::size(kWorlds); ++world) {
      std::vector<std::string> cases;
      for (const std::size_t method : methods_of(optimizer)) {
        const Place place{optimizer, world, method};
        if (is_asynchronous(kMethods[method]) && median_time(place) > bsp_time(place))
          cases.push_back(concat(kMethods[method].name, ' ', ratio_text(speed_up(place)),
                                 differs_from_bsp(place) ? "" : "~"));
      }
      text += concat("  ", kWorlds[world].short_name, ": ",
                     cases.empty() ? "none" : join(cases, "; "), '\n');
    }
    return text;
  }

  /// How much faster than the best method with rounds.
  study::HeatMap heat_map_of(std::size_t optimizer) const {
    study::HeatMap map{.title = concat(kTunedOptimizers[optimizer].name,
                                       ": speed-up over the best method with rounds, to ",
                                       fixed(100 * kTarget, 0), '%')};
    for (const auto& world : kWorlds) map.columns.push_back(world.short_name);
    for (const std::size_t method : methods_of(optimizer)) {
      map.rows.push_back(kMethods[method].name);
      auto& values = map.values.emplace_back();
      for (std::size_t world = 0; world < std::size(kWorlds); ++world) {
        const double time = median_time({optimizer, world, method});
        values.push_back(time == kNever ? 0 : best_time(optimizer, world, true) / time);
      }
    }
    return map;
  }

 private:
  /// The outcomes of a combination, by the time to the target.
  std::vector<Outcome> outcomes(const Place& place) const {
    std::vector<Outcome> all;
    for (const auto& figures : study_.runs(place.name()))
      all.push_back({.to_target = figures.at("to_target"),
                     .samples_to_target = figures.at("samples_to_target"),
                     .loss = figures.at("loss"),
                     .accuracy = figures.at("accuracy"),
                     .samples_per_second = figures.at("samples_per_second")});
    std::ranges::sort(all, {}, &Outcome::to_target);
    return all;
  }
  double median_time(const Place& place) const { return study_.median(place.name(), "to_target"); }
  double bsp_time(const Place& place) const {
    return median_time({place.optimizer, place.world, kBsp});
  }
  /// 0 if the target is not reached.
  double speed_up(const Place& place) const { return bsp_time(place) / median_time(place); }
  /// Whether each seed is slower than each of bsp.
  bool differs_from_bsp(const Place& place) const {
    const std::string bsp = Place{place.optimizer, place.world, kBsp}.name();
    return study_.values(place.name(), "to_target").front() >
           study_.values(bsp, "to_target").back();
  }
  double best_time(std::size_t optimizer, std::size_t world, bool only_synchronous) const {
    double best = kNever;
    for (const std::size_t method : methods_of(optimizer))
      if (!only_synchronous || kMethods[method].synchronous)
        best = std::min(best, median_time({optimizer, world, method}));
    return best;
  }
  /// The fewest samples to the target of any method in any world, at the mean speed of the workers
  /// of this world if none waited. Chance can make a short run a little faster.
  double without_waiting(std::size_t optimizer, std::size_t world) const {
    double samples = kNever, speed = 0;
    for (const std::size_t method : methods_of(optimizer)) {
      for (std::size_t any = 0; any < std::size(kWorlds); ++any)
        for (const Outcome& one : outcomes({optimizer, any, method}))
          samples = std::min(samples, one.samples_to_target);
      for (const Outcome& one : outcomes({optimizer, world, method}))
        speed = std::max(speed, one.samples_per_second);
    }
    return samples / speed;
  }
  static std::string ratio_text(double ratio) {
    return std::isfinite(ratio) && ratio > 0 ? fixed(ratio, 2) : ratio == 0 ? "never" : "-";
  }

  const study::TunedStudy& study_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("staleness-atlas",
                    "Compare consistency and delay policies, each with its best learning rate.");
  study::in_worlds(scenario)
      .description(
          "26 ways of keeping eight workers together, with plain SGD and with momentum, in\n"
          "five simulated worlds. Each combination runs with five learning rates on one seed, and\n"
          "with the best of them on three others: 2,000 runs of a 784-64-10 network on\n"
          "Fashion-MNIST, tested on 2,000 images. All times are virtual. An interrupted atlas\n"
          "continues in the same folder (--out). --epochs 0.2 gives a quick look.")
      .decides({"--staleness", "--balance", "--prefetch", "--no-prefetch", "--delay-policy",
                "--optimizer", "--lr", "--whole-steps", "--local-steps", "--outer-optimizer",
                "--outer-lr", "--merge"});
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  if (line.plan.workers < 3)
    return report.refuse("--workers: backup(2) needs three; give --workers 3 or more");
  const auto shared = study::share_data(line.plan, kTestSamples);
  if (!shared) return report.refuse(shared.error().text);
  const nlohmann::json settings{
      {"plan", to_json(line.plan)}, {"target", kTarget}, {"test_samples", kTestSamples}};
  study::TunedStudy study(line.plan.seed, subjects(line.plan), kMeasures, line.options.quiet);
  return study.run(report, settings, [&] {
    const Tables tables(study);
    for (std::size_t optimizer = 0; optimizer < std::size(kTunedOptimizers); ++optimizer) {
      report.print(tables.table_of(optimizer));
      report.print(tables.losses_of_asynchrony(optimizer));
      report.write(concat("heat-map-", kTunedOptimizers[optimizer].name, ".svg"),
                   study::svg(tables.heat_map_of(optimizer)));
    }
  });
}
