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
// one, three and twelve micro-batches, and tells when each was first seen at a test loss, in
// virtual seconds; below each table, who was first.
//
// All is simulated, with real gradients. Other seeds and other targets give other winners: look at
// the curves (--out DIR) before you believe a row.
#include <leeway/actors/stages.hpp>
#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/monitoring/picture.hpp>
#include <leeway/monitoring/run_folder.hpp>
#include <leeway/runtime/scenario.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>

using namespace leeway;

namespace {

constexpr const char* kSchedules[] = {"1f1b", "zero_bubble_h1", "weight_stashing", "2bw"};
constexpr double kRates[] = {0.01, 0.05};
constexpr std::uint32_t kMicroBatches[] = {1, 3, 12};
constexpr double kTargets[] = {1.0, 0.7, 0.6};  // test loss
constexpr std::int64_t kTestSamples = 1000;

/// The first samples of a data set.
class FirstOf final : public Dataset {
 public:
  FirstOf(std::shared_ptr<const Dataset> all, std::int64_t size)
      : all_(std::move(all)), size_(std::min(size, all_->size())) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return all_->sample_shape(); }
  int classes() const override { return all_->classes(); }
  std::int64_t label_count() const override { return all_->label_count(); }
  std::int64_t target_count() const override { return all_->target_count(); }
  float background() const override { return all_->background(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    all_->gather(samples, x, labels, targets);
  }

 private:
  std::shared_ptr<const Dataset> all_;
  std::int64_t size_;
};

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

std::string cell(std::size_t width, const std::string& text) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

std::optional<double> seconds_to(double target, const Result& result) {
  for (const auto& evaluation : result.totals.evaluations)
    if (evaluation.loss <= target) return (evaluation.now - Instant{}).seconds();
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

std::string row(const std::string& schedule, const Result& result) {
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  const double stages = static_cast<double>(result.totals.workers.size());
  std::string text = cell(17, schedule) + cell(9, fixed(result.seconds, 2)) +
                     cell(8, percent(1 - busy / (result.seconds * stages))) +
                     cell(6, fixed(mean_lag(result), 1));
  for (const double target : kTargets) {
    const auto seconds = seconds_to(target, result);
    text += cell(9, seconds ? fixed(*seconds, 2) : "never");
  }
  return text + cell(11, fixed(result.test_loss, 3)) + cell(10, percent(result.test_accuracy)) +
         '\n';
}

/// The least target that anybody was seen at, and who was first.
class First {
 public:
  void look(const std::string& schedule, const Result& result) {
    for (std::size_t i = 0; i < std::size(kTargets); ++i) {
      const auto seconds = seconds_to(kTargets[i], result);
      if (!seconds || (best_ && i < target_) || (best_ && i == target_ && *seconds >= *best_))
        continue;
      target_ = i;
      best_ = seconds;
      schedule_ = schedule;
    }
  }
  std::string text() const {
    if (!best_) return "Nobody was seen at any of these losses.\n";
    return concat("First at ", fixed(kTargets[target_], 1), ": ", schedule_, ".\n");
  }

 private:
  std::optional<double> best_;
  std::size_t target_ = 0;
  std::string schedule_;
};

/// All runs, one table and one chart for each number of micro-batches and rate.
class Study {
 public:
  Study(Plan base, bool quiet) : base_(std::move(base)), quiet_(quiet) {}

  /// An exit code.
  int run_all() {
    for (const std::uint32_t micro_batches : kMicroBatches)
      for (const double rate : kRates)
        if (const int code = compare(micro_batches, rate)) return code;
    return 0;
  }
  const std::string& table() const { return table_; }
  const std::vector<Chart>& charts() const { return charts_; }

 private:
  void tell(const std::string& text) {
    table_ += text;
    if (!quiet_) std::cout << text << std::flush;
  }

  int compare(std::uint32_t micro_batches, double rate) {
    const std::string title =
        concat(micro_batches, micro_batches == 1 ? " micro-batch" : " micro-batches",
               " an update, learning rate ", rate);
    std::string head = concat('\n', title, "\n\n", cell(17, "schedule"), cell(9, "seconds"),
                              cell(8, "idle"), cell(6, "lag"));
    for (const double target : kTargets) head += cell(9, concat("to ", fixed(target, 1)));
    tell(head + cell(11, "test loss") + cell(10, "accuracy") + '\n');
    Chart chart{.title = title, .x_label = "virtual seconds", .y_label = "test loss"};
    chart.y_range = {0, 2.5};
    First first;
    for (const std::string schedule : kSchedules) {
      Plan plan = base_;
      plan.optimizer.learning_rate = rate;
      plan.micro_batches = micro_batches;
      plan.pipeline.schedule = schedule;
      if (const auto valid = pipeline::validate(pipeline_spec(plan)); !valid) {
        tell(concat(cell(17, schedule), "   needs more micro-batches\n"));
        continue;
      }
      const Result result = run(plan, {.quiet = true});
      if (result.exit_code == 130 || !result.ran) {
        std::cerr << "async-pipelines: " << (result.ran ? "interrupted" : result.error) << '\n';
        return result.exit_code;
      }
      // A loss that is not finite ends a run: that is an answer, too.
      tell(result.ok() ? row(schedule, result)
                       : concat(cell(17, schedule), "   ",
                                result.error.substr(0, result.error.find(';')), '\n'));
      if (result.ok()) first.look(schedule, result);
      Series curve{.name = schedule};
      for (const auto& evaluation : result.totals.evaluations)
        curve.points.emplace_back((evaluation.now - Instant{}).seconds(), evaluation.loss);
      chart.series.push_back(std::move(curve));
    }
    tell('\n' + first.text());
    charts_.push_back(std::move(chart));
    return 0;
  }

  Plan base_;
  bool quiet_;
  std::string table_;
  std::vector<Chart> charts_;
};

/// Loads the data of the plan, once for all runs.
Status share_data(Plan& plan) {
  auto data = load_data(plan.data, plan.seed);
  if (!data) return data.error();
  data->test = std::make_shared<FirstOf>(data->test, kTestSamples);
  register_data("shared",
                [shared = *data](std::uint64_t) -> Expected<TrainTest> { return shared; });
  plan.data = plan::CustomData{"shared"};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("async-pipelines",
                    "Compare pipelines that are never emptied with those that are.");
  scenario
      .description(
          "A network of nine linear layers learns Fashion-MNIST, cut into four stages, in virtual "
          "time: by four\n"
          "schedules, with 1, 3 and 12 micro-batches an update of 48 samples, at two rates. A run "
          "whose loss is not\n"
          "finite is told as such: at the larger rate that may happen to old gradients. \"Idle\": "
          "the share of the\n"
          "time in which stages compute nothing; \"lag\": how many updates old gradients are, on "
          "average.\n"
          "--schedule, --micro-batches and --lr have no effect.")
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
  const std::string& folder = line.options.folder;
  auto status = share_data(line.plan);
  if (status && !folder.empty()) status = make_study_folder(folder);
  if (!status) {
    std::cerr << "async-pipelines: " << status.error().text << '\n';
    return 2;
  }
  Study study(line.plan, line.options.quiet);
  if (const int code = study.run_all()) return code;
  if (folder.empty()) return 0;
  std::ofstream(folder + "/table.txt") << study.table();
  std::ofstream(folder + "/loss.svg") << svg(study.charts());
  std::cout << "\nKept in " << folder << ": table.txt, loss.svg\n";
  return 0;
}
