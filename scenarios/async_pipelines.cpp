// async-pipelines: is a pipeline that is never emptied worth its old gradients?
//
// By 1f1b the pipeline runs empty at each update, and stages idle. Weight stashing (PipeDream) and
// 2bw go on without a pause, and pay with gradients of weights that are some updates old. Which of
// the two learns faster depends on how many micro-batches an update has. With one, stages of 1f1b
// take turns, so there is much to gain; but then weight stashing computes on weights that are up to
// three updates old, for a stage has begun the next batches before the gradient of the first is
// back. With many the bubble is small, and the old weights buy little. And it depends on the
// learning rate: what is old bears a smaller one.
//
// The program trains the same network on the same batches by four schedules, at two rates, with
// one, three and twelve micro-batches, and tells when each came to a test loss, in virtual seconds;
// below each table, who was first. The loss is known after some of the updates, and taken to fall
// evenly between two of them; when an update was done is known of all. Schedules that are emptied
// make the same updates, so what one of them has after so many updates the other has as well: they
// differ in time alone, and are compared at the same update.
//
// All is simulated, with real gradients. Other seeds and other targets give other winners: look at
// the curves (--out DIR) before you believe a row.
#include <leeway/actors/stages.hpp>
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/policies/pipeline/schedule.hpp>
#include <leeway/runtime/scenario.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

constexpr const char* kSchedules[] = {"1f1b", "zero_bubble_h1", "weight_stashing", "2bw"};
constexpr double kRates[] = {0.01, 0.05};
constexpr std::uint32_t kMicroBatches[] = {1, 3, 12};
constexpr double kTargets[] = {1.0, 0.7, 0.6};  // test loss
constexpr std::int64_t kTestSamples = 1000;

/// Eight layers alike, of images of 14x14 pixels, and a small one.
std::vector<plan::Layer> layers() {
  std::vector<plan::Layer> all = {avg_pool(2), flatten()};
  for (int i = 0; i < 8; ++i) {
    all.push_back(linear(196));
    all.push_back(relu());
  }
  all.push_back(linear(10));
  return all;
}

/// The test loss after so many updates, in ascending order.
using Losses = std::vector<std::pair<double, double>>;

/// When the updates of a run were done, and which of them were evaluated.
class Updates {
 public:
  void look(Instant at, const Event& event) {
    // The last shard, and of each shard the last stage, count.
    if (event.kind == Event::Kind::clock_moved) done_[event.value] = (at - Instant{}).seconds();
    if (event.kind == Event::Kind::snapshot_taken)
      snapshots_[event.value] = static_cast<double>(event.iteration.value());
  }
  /// Cuts are evaluated in order, and at last the final weights.
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
  /// Seconds until so many updates were done; between two of them, that share of the time.
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
  std::map<std::int64_t, double> done_;       // updates, and when the last block had had them
  std::map<std::int64_t, double> snapshots_;  // of each cut how many updates its weights have had
};

/// Updates until the loss was at the target, taken to fall evenly between two evaluations.
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

/// Updates between the weights of a gradient and those that it was applied to, on average.
double mean_lag(const Result& result) {
  double lag = 0, pushes = 0;
  for (std::size_t i = 0; i < result.totals.version_lags.size(); ++i) {
    lag += static_cast<double>(result.totals.version_lags[i] * i);
    pushes += static_cast<double>(result.totals.version_lags[i]);
  }
  return lag / std::max(pushes, 1.0);
}

/// What is compared of a run.
struct Trial {
  std::string schedule;
  Result result;
  Updates updates;
  Losses losses;  // its own, or those of another run with the same updates
};

std::optional<double> seconds_to(double target, const Trial& trial) {
  const auto updates = updates_to(target, trial.losses);
  if (!updates) return std::nullopt;
  return trial.updates.seconds(*updates);
}

std::string row(const Trial& trial) {
  const Result& result = trial.result;
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double stages = static_cast<double>(result.totals.workers.size());
  std::string text = cell(17, trial.schedule) + cell(9, fixed(result.seconds, 2)) +
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

/// The least target that anybody came to, and who was first.
class First {
 public:
  void look(const Trial& trial) {
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
    if (!best_) return "Nobody came to any of these losses.\n";
    return concat("First at ", fixed(kTargets[target_], 1), ": ", schedule_, ".\n");
  }

 private:
  std::optional<double> best_;
  std::size_t target_ = 0;
  std::string schedule_;
};

/// How far apart evaluations are, in updates.
class Spacing {
 public:
  void look(const Losses& losses) {
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
                " an update, learning rate ", rate);
}

Plan plan_of(const Plan& base, std::uint32_t micro_batches, double rate,
             const std::string& schedule) {
  Plan plan = base;
  plan.optimizer.learning_rate = rate;
  plan.micro_batches = micro_batches;
  plan.pipeline.schedule = schedule;
  return plan;
}

/// Whether the schedule allows so many micro-batches.
bool is_allowed(const Plan& plan) {
  return bool(pipeline::validate(pipeline_spec(plan)));
}

std::vector<study::Named> all_plans(const Plan& base) {
  std::vector<study::Named> all;
  for (const std::uint32_t micro_batches : kMicroBatches)
    for (const std::string schedule : kSchedules) {
      const Plan plan = plan_of(base, micro_batches, kRates[0], schedule);
      if (is_allowed(plan))
        all.push_back({concat(schedule, ", ", title_of(micro_batches, kRates[0])), plan});
    }
  return all;
}

/// All runs, one table and one chart for each number of micro-batches and rate.
class Study {
 public:
  Study(Plan base, study::Report& report) : base_(std::move(base)), report_(report) {}

  /// An exit code.
  int run_all() {
    for (const std::uint32_t micro_batches : kMicroBatches)
      for (const double rate : kRates)
        if (const int code = compare(micro_batches, rate)) return code;
    return report_.end();
  }

 private:
  int compare(std::uint32_t micro_batches, double rate) {
    const std::string title = title_of(micro_batches, rate);
    std::string head = concat('\n', title, "\n\n", cell(17, "schedule"), cell(9, "seconds"),
                              cell(8, "idle"), cell(6, "lag"));
    for (const double target : kTargets) head += cell(9, concat("to ", fixed(target, 1)));
    report_.tell(head + cell(11, "test loss") + cell(10, "accuracy") + '\n');
    charts_.push_back({.title = title, .x_label = "virtual seconds", .y_label = "test loss"});
    charts_.back().y_range = {0, 2.5};
    First first;
    Spacing spacing;
    std::optional<Losses> of_emptied;
    for (const std::string schedule : kSchedules) {
      const Plan plan = plan_of(base_, micro_batches, rate, schedule);
      if (!is_allowed(plan)) {
        report_.tell(concat(cell(17, schedule), "   needs more micro-batches\n"));
        continue;
      }
      Trial trial{.schedule = schedule};
      trial.result =
          run(plan, {.quiet = true, .on_event = [&](Address, Instant at, const Event& event) {
                       trial.updates.look(at, event);
                     }});
      const Result& result = trial.result;
      if (result.exit_code == 130 || !result.ran)
        return report_.failed(concat(title, ", ", schedule), result);
      trial.losses = trial.updates.losses(result.totals.evaluations);
      spacing.look(trial.losses);
      // Alone, a pipeline that is emptied makes the same updates by each schedule.
      const bool alone = plan.workers == plan.pipeline.stages;
      if (alone && !(*pipeline::find_schedule(schedule))->asynchronous() && result.ok()) {
        if (!of_emptied) of_emptied = trial.losses;
        trial.losses = *of_emptied;
      }
      // A loss that is not finite ends a run: that is an answer, too.
      report_.tell(result.ok() ? row(trial)
                               : concat(cell(17, schedule), "   ",
                                        result.error.substr(0, result.error.find(';')), '\n'));
      if (result.ok()) first.look(trial);
      charts_.back().series.push_back(curve_of(trial));
      report_.draw(charts_);
    }
    report_.tell(concat('\n', first.text(), spacing.text()));
    return 0;
  }

  Plan base_;
  study::Report& report_;
  std::vector<Chart> charts_;
};

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("async-pipelines",
                    "Compare pipelines that are never emptied with those that are.");
  scenario
      .description(
          "A network of nine linear layers learns Fashion-MNIST, snapshot into four stages, in "
          "virtual "
          "time: by four\n"
          "schedules, with 1, 3 and 12 micro-batches an update of 48 samples, at two rates. A run "
          "whose loss is not\n"
          "finite is told as such: at the larger rate that may happen to old gradients. \"Idle\": "
          "the share of the\n"
          "time in which stages compute nothing; \"lag\": how many updates old gradients are, on "
          "average; \"to 0.7\":\n"
          "seconds until the test loss was there, taken to fall evenly between two evaluations.")
      .decides({"--schedule", "--chunks", "--micro-batches", "--lr", "--gradients"})
      .decides(study::kOfClusters)
      .decides(study::kOfRunFolders)
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
    return report.refuse(concat("--batch: ", line.plan.batch, " samples cannot be ", most,
                                " micro-batches; give --batch ", most, " or more"));
  auto status = study::share_data(line.plan, kTestSamples);
  if (status) status = study::check(all_plans(line.plan));
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  return Study(line.plan, report).run_all();
}
