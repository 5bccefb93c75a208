// async-pipelines: when is a pipeline without flushes worth its older gradients?
//
// 1f1b flushes the pipeline at each update, so stages idle. Weight stashing (PipeDream) and 2bw
// never flush, but use gradients of weights that are several updates old. Which of them learns
// faster depends on the number of micro-batches per update. With one, the stages of 1f1b take
// turns, so there is much to gain, but weight stashing computes on weights that are up to three
// updates old. With many, the bubble is small and old weights gain little. It also depends on the
// learning rate: old gradients need a smaller one.
//
// The program trains the same network on the same batches by four schedules, at two learning rates,
// with one, three and twelve micro-batches. It prints the virtual seconds until each run reaches a
// test loss, and the first schedule to reach the lowest one. The loss is known after some updates
// and interpolated between them; the time of each update is known exactly. Schedules with flushes
// make the same updates, so their losses are the same at each update and only their times differ.
//
// Without a flush, it also trains with --predict-weights: stages pull the weights that momentum
// predicts for the update with their gradient.
//
// Everything is simulated, with real gradients. Other seeds and targets have other winners: look at
// the curves (--out DIR) before you trust a row.
#include <leeway/actors/outbox.hpp>
#include <leeway/actors/stages.hpp>
#include <leeway/core/exit_codes.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/policies/pipeline/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

/// A schedule, without a flush also with predicted weights.
struct Way {
  std::string name, schedule;
  bool predicts = false;
};
const Way kWays[] = {{"1f1b", "1f1b"},
                     {"zb_h1", "zb_h1"},
                     {"weight_stashing", "weight_stashing"},
                     {"  with prediction", "weight_stashing", true},
                     {"2bw", "2bw"},
                     {"  with prediction", "2bw", true}};
constexpr std::size_t kNameWidth = 19;
constexpr double kRates[] = {0.01, 0.05};
constexpr std::uint32_t kMicroBatches[] = {1, 3, 12};
constexpr double kTargets[] = {1.0, 0.7, 0.6};  // test loss
constexpr std::int64_t kTestSamples = 1000;

/// Eight equal linear layers on images of 14x14 pixels, and a small one.
std::vector<plan::Layer> layers() {
  std::vector<plan::Layer> all = {avg_pool(2), flatten()};
  for (int i = 0; i < 8; ++i) {
    all.push_back(linear(196));
    all.push_back(relu());
  }
  all.push_back(linear(10));
  return all;
}

/// (number of updates, test loss), in ascending order.
using Losses = std::vector<std::pair<double, double>>;

/// Records when the updates of a run finished and which of them were evaluated.
class Updates {
 public:
  void observe(Instant at, const Event& event) {
    // Later shards and stages overwrite earlier ones: an update is finished when the last one is.
    if (const auto* moved = event.as<event::ClockMoved>())
      done_[moved->clock.value()] = (at - Instant{}).seconds();
    if (const auto* taken = event.as<event::SnapshotTaken>())
      snapshots_[taken->snapshot] = static_cast<double>(taken->iteration.value());
  }
  /// Snapshots are evaluated in order, and the final weights last.
  Losses losses(const std::vector<EvaluationResult>& evaluations) const {
    Losses losses;
    auto snapshot = snapshots_.begin();
    for (const auto& evaluation : evaluations)
      if (!evaluation.final && snapshot != snapshots_.end())
        losses.emplace_back((snapshot++)->second, evaluation.loss);
      else if (evaluation.final && !done_.empty())
        losses.emplace_back(static_cast<double>(done_.rbegin()->first), evaluation.loss);
    return losses;
  }
  /// Seconds until this number of updates was finished, interpolated.
  double seconds(double updates) const {
    const auto after = done_.lower_bound(static_cast<std::int64_t>(std::ceil(updates)));
    if (after == done_.end()) return done_.empty() ? 0 : done_.rbegin()->second;
    if (after == done_.begin()) return after->second;
    const auto before = std::prev(after);
    const double share = (updates - static_cast<double>(before->first)) /
                         static_cast<double>(after->first - before->first);
    return before->second + share * (after->second - before->second);
  }

 private:
  std::map<std::int64_t, double> done_;        // seconds by number of updates
  std::map<std::uint64_t, double> snapshots_;  // updates by snapshot
};

/// Updates until the loss reached the target, interpolated between two evaluations.
std::optional<double> updates_to(double target, const Losses& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto& [updates, loss] = losses[i];
    if (loss > target) continue;
    if (i == 0 || loss == target) return updates;
    const auto& [earlier, larger] = losses[i - 1];
    return earlier + (larger - target) / (larger - loss) * (updates - earlier);
  }
  return std::nullopt;
}

/// Average age of the gradients, in updates.
double mean_lag(const Result& result) {
  double lag = 0, pushes = 0;
  for (std::size_t i = 0; i < result.totals.version_lags.size(); ++i) {
    lag += static_cast<double>(result.totals.version_lags[i] * i);
    pushes += static_cast<double>(result.totals.version_lags[i]);
  }
  return lag / std::max(pushes, 1.0);
}

/// One row of a table.
struct Trial {
  std::string schedule;
  Result result;
  Updates updates;
  Losses losses;  // of this run, or of another run with the same updates
};

std::optional<double> seconds_to(double target, const Trial& trial) {
  const auto updates = updates_to(target, trial.losses);
  if (!updates) return std::nullopt;
  return trial.updates.seconds(*updates);
}

std::string row(const Trial& trial, const std::string& name) {
  const Result& result = trial.result;
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double stages = static_cast<double>(result.totals.workers.size());
  std::string text = cell(kNameWidth, name) + cell(9, fixed(result.seconds, 2)) +
                     cell(8, percent(1 - busy / (result.seconds * stages))) +
                     cell(6, fixed(mean_lag(result), 1));
  for (const double target : kTargets) {
    const auto seconds = seconds_to(target, trial);
    text += cell(9, seconds ? fixed(*seconds, 2) : "never");
  }
  return text + cell(11, fixed(result.test_loss, 3)) + cell(10, percent(result.test_accuracy)) +
         '\n';
}

Series curve_of(const Trial& trial) {
  Series curve{.name = trial.schedule};
  for (const auto& [updates, loss] : trial.losses)
    curve.points.emplace_back(trial.updates.seconds(updates), loss);
  return curve;
}

/// The lowest target that a run reached, and the schedule that reached it first.
class Winner {
 public:
  void observe(const Trial& trial) {
    for (std::size_t i = 0; i < std::size(kTargets); ++i) {
      const auto seconds = seconds_to(kTargets[i], trial);
      if (!seconds || (best_ && i < target_) || (best_ && i == target_ && *seconds >= *best_))
        continue;
      target_ = i;
      best_ = seconds;
      schedule_ = trial.schedule;
    }
  }
  std::string text() const {
    if (!best_) return "No run reached any of these losses.\n";
    return concat("First to ", fixed(kTargets[target_], 1), ": ", schedule_, ".\n");
  }

 private:
  std::optional<double> best_;
  std::size_t target_ = 0;
  std::string schedule_;
};

/// Distance between evaluations, in updates.
class Spacing {
 public:
  void observe(const Losses& losses) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const double gap = losses[i].first - (i == 0 ? 0 : losses[i - 1].first);
      least_ = std::min(least_, gap);
      most_ = std::max(most_, gap);
    }
  }
  std::string text() const {
    if (most_ == 0) return "";
    return concat("Evaluations are ", least_ == most_ ? "" : concat(least_, " to "), most_,
                  " updates apart.\n");
  }

 private:
  double least_ = 1e300, most_ = 0;
};

std::string title_of(std::uint32_t micro_batches, double rate) {
  return concat(micro_batches, micro_batches == 1 ? " micro-batch" : " micro-batches",
                " per update, learning rate ", rate);
}

Plan plan_of(const Plan& base, std::uint32_t micro_batches, double rate, const Way& way) {
  Plan plan = base;
  plan.optimizer.learning_rate = rate;
  plan.micro_batches = micro_batches;
  plan.pipeline.schedule = way.schedule;
  plan.pipeline.predict_weights = way.predicts;
  return plan;
}

/// True if the schedule allows the plan's number of micro-batches.
bool is_allowed(const Plan& plan) {
  return bool(pipeline::validate(pipeline_spec(plan)));
}

std::vector<study::Named> all_plans(const Plan& base) {
  std::vector<study::Named> all;
  for (const std::uint32_t micro_batches : kMicroBatches)
    for (const Way& way : kWays) {
      const Plan plan = plan_of(base, micro_batches, kRates[0], way);
      if (is_allowed(plan))
        all.push_back({concat(way.name, ", ", title_of(micro_batches, kRates[0])), plan});
    }
  return all;
}

/// All runs, one table and one chart for each number of micro-batches and rate.
class Study {
 public:
  Study(Plan base, study::Report& report) : base_(std::move(base)), report_(report) {}

  /// Returns the exit code.
  int run_all() {
    for (const std::uint32_t micro_batches : kMicroBatches)
      for (const double rate : kRates)
        if (const int code = compare(micro_batches, rate)) return code;
    return report_.end();
  }

 private:
  int compare(std::uint32_t micro_batches, double rate) {
    const std::string title = title_of(micro_batches, rate);
    std::string head = concat('\n', title, "\n\n", cell(kNameWidth, "schedule"), cell(9, "seconds"),
                              cell(8, "idle"), cell(6, "lag"));
    for (const double target : kTargets) head += cell(9, concat("to ", fixed(target, 1)));
    report_.print(head + cell(11, "test loss") + cell(10, "accuracy") + '\n');
    charts_.push_back({.title = title, .x_label = "virtual seconds", .y_label = "test loss"});
    charts_.back().y_range = {0, 2.5};
    Winner winner;
    Spacing spacing;
    std::optional<Losses> flushing_losses;
    for (const Way& way : kWays) {
      const Plan plan = plan_of(base_, micro_batches, rate, way);
      if (!is_allowed(plan)) {
        report_.print(concat(cell(kNameWidth, way.name), "   needs more micro-batches\n"));
        continue;
      }
      Trial trial{.schedule = way.predicts ? way.schedule + " with prediction" : way.name};
      trial.result =
          run(plan, {.quiet = true, .on_event = [&](Address, Instant at, const Event& event) {
                       trial.updates.observe(at, event);
                     }});
      const Result& result = trial.result;
      if (result.exit_code == kExitInterrupted || !result.ran)
        return report_.failed(concat(title, ", ", trial.schedule), result);
      trial.losses = trial.updates.losses(result.totals.evaluations);
      spacing.observe(trial.losses);
      // A single pipeline makes the same updates by each schedule with flushes.
      const bool single = plan.workers == plan.pipeline.stages;
      if (single && !(*pipeline::find_schedule(way.schedule))->asynchronous() && result.ok()) {
        if (!flushing_losses) flushing_losses = trial.losses;
        trial.losses = *flushing_losses;
      }
      // Divergence is a result, too.
      report_.print(result.ok() ? row(trial, way.name)
                                : concat(cell(kNameWidth, way.name), "   ",
                                         result.error.substr(0, result.error.find(';')), '\n'));
      if (result.ok()) winner.observe(trial);
      charts_.back().series.push_back(curve_of(trial));
      report_.draw(charts_);
    }
    report_.print(concat('\n', winner.text(), spacing.text()));
    return 0;
  }

  Plan base_;
  study::Report& report_;
  std::vector<Chart> charts_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("async-pipelines", "Compare pipeline schedules with and without flushes.");
  scenario
      .description(
          "A network of nine linear layers learns Fashion-MNIST in virtual time, split into\n"
          "four stages, by four schedules, at two learning rates, with 1, 3 and 12 micro-\n"
          "batches per update of 48 samples. Runs whose loss is not finite are reported as\n"
          "such; old gradients can cause that at the larger rate. \"idle\" is the share of time\n"
          "in which stages compute nothing, \"lag\" the average age of gradients in updates, and\n"
          "\"to 0.7\" the seconds until the test loss reached 0.7, interpolated between\n"
          "evaluations.")
      .decides({"--schedule", "--chunks", "--micro-batches", "--lr", "--gradients"})
      .decides(study::kOfSingleRuns)
      .data(fashion_mnist())
      .model(layers())
      .loss(softmax_cross_entropy())
      .optimizer(momentum(kRates[0], 0.9))
      .stages(4)
      .consistency(ssp(4))
      .shards(2)
      .batch(48)
      .epochs(0.5)
      .evaluate_every(0.025)
      .simulated({.speed = 2});
  CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  const auto most = *std::max_element(std::begin(kMicroBatches), std::end(kMicroBatches));
  if (line.plan.batch < most)
    return report.refuse(concat("--batch: ", line.plan.batch, " samples cannot be split into ",
                                most, " micro-batches; give --batch ", most, " or more"));
  auto status = study::share_data(line.plan, kTestSamples);
  if (status) status = study::check(all_plans(line.plan));
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  return Study(line.plan, report).run_all();
}
