#include "runtime/trained/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/idx.hpp"
#include "models/datasets/load.hpp"
#include "runtime/trained/input.hpp"

namespace leeway {
namespace {

/// Points of the picture of a regression.
constexpr std::int64_t kExamples = 2000;

/// A range of samples in memory.
struct Slice {
  std::int64_t count = 0;
  const float* x = nullptr;
  const std::int32_t* labels = nullptr;
  const float* targets = nullptr;
};

/// Adds up the results of batches.
class Evaluator {
 public:
  Evaluator(const TrainedModel& trained, std::string data, std::int64_t samples)
      : trained_(trained), pass_(trained) {
    out_.name = trained.plan.name;
    out_.data = std::move(data);
    out_.samples = samples;
    for (int i = 0; i < trained.classes(); ++i) out_.classes.push_back(trained.class_name(i));
    step_ = std::max<std::int64_t>(1, samples / kExamples);
  }

  std::int64_t batch() const { return pass_.batch(); }

  /// Error: the outputs are not finite.
  Status add(const Slice& slice) {
    const PassResult result = pass_.run(slice.count, slice.x, slice.labels, slice.targets);
    out_.loss += result.loss * static_cast<double>(slice.count);
    correct_ += result.correct;
    const auto width = static_cast<std::size_t>(trained_.model->output().count());
    for (std::int64_t i = 0; i < slice.count; ++i) {
      const std::span outputs(pass_.outputs() + static_cast<std::size_t>(i) * width, width);
      if (!are_finite(outputs))
        return Error{
            "the model's outputs are not finite, so it has diverged; train again with a smaller "
            "--lr"};
      const auto values = interpret(trained_, outputs);
      if (slice.labels)
        add_classes(values, slice.labels + i * trained_.model->labels());
      else
        add_numbers(values, slice.targets + i * static_cast<std::int64_t>(width));
      ++done_;
    }
    return {};
  }

  ModelEvaluation take() {
    out_.loss /= static_cast<double>(out_.samples);
    const auto count = static_cast<double>(out_.predictions);
    if (out_.has_classes()) {
      out_.accuracy = static_cast<double>(correct_) / count;
      return std::move(out_);
    }
    const double variance = squares_ / count - (sum_ / count) * (sum_ / count);
    const double error = out_.root_mean_square_error / count;
    out_.mean_absolute_error /= count;
    out_.root_mean_square_error = std::sqrt(error);
    out_.explained_variance =
        variance > 0 ? 1 - error / variance : std::numeric_limits<double>::quiet_NaN();
    return std::move(out_);
  }

 private:
  void add_classes(std::span<const double> probabilities, const std::int32_t* labels) {
    const auto classes = static_cast<std::size_t>(trained_.classes());
    for (std::size_t at = 0; at + classes <= probabilities.size(); at += classes, ++labels) {
      const auto row = probabilities.subspan(at, classes);
      const auto best = std::max_element(row.begin(), row.end());
      const int predicted = static_cast<int>(best - row.begin());
      ++out_.confusion[{*labels, predicted}];
      const auto bin = static_cast<std::size_t>(*best * ModelEvaluation::kBins);
      auto& of = out_.bins[std::min(bin, ModelEvaluation::kBins - 1)];
      ++of.count;
      of.correct += predicted == *labels ? 1 : 0;
      of.confidence += *best;
      ++out_.predictions;
    }
  }

  void add_numbers(std::span<const double> predicted, const float* targets) {
    const Preprocessing* pre = trained_.preprocessing.get();
    for (const double value : predicted) {
      const double target = pre ? *targets * pre->target_deviation + pre->target_mean : *targets;
      ++targets;
      // Relative to the first target, so that a large mean costs no digits.
      if (out_.predictions == 0) origin_ = target;
      sum_ += target - origin_;
      squares_ += (target - origin_) * (target - origin_);
      out_.mean_absolute_error += std::abs(value - target);
      out_.root_mean_square_error += (value - target) * (value - target);
      ++out_.predictions;
      if (done_ % step_ == 0) out_.examples.emplace_back(target, value);
    }
  }

  const TrainedModel& trained_;
  ForwardPass pass_;
  ModelEvaluation out_;
  std::int64_t correct_ = 0, done_ = 0, step_ = 1;
  double origin_ = 0, sum_ = 0, squares_ = 0;
};

/// Evaluates the test data of the run, in the batches of the run's own evaluation.
Expected<ModelEvaluation> evaluate_run(const TrainedModel& trained) {
  const auto data = load_data(trained.plan.data, trained.plan.seed);
  if (!data) return data.error();
  if (data->preprocessing && trained.preprocessing &&
      *data->preprocessing != *trained.preprocessing)
    return Error{
        "the data is not the one that the model was trained with; give test data with "
        "--data FILE"};
  const Dataset& test = *data->test;
  if (test.sample_shape() != trained.model->input())
    return Error{concat("the test samples are ", test.sample_shape(), ", the model reads ",
                        trained.model->input(), "; give test data with --data FILE")};
  Evaluator evaluator(trained, "the run's test data", test.size());
  const auto floats = static_cast<std::size_t>(test.sample_shape().count());
  const auto most = static_cast<std::size_t>(evaluator.batch());
  std::vector<float> x(most * floats);
  std::vector<std::int32_t> labels(most * static_cast<std::size_t>(test.label_count()));
  std::vector<float> targets(most * static_cast<std::size_t>(test.target_count()));
  for (std::int64_t first = 0; first < test.size(); first += evaluator.batch()) {
    const std::int64_t count = std::min(evaluator.batch(), test.size() - first);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), first);
    test.gather(samples, x.data(), labels.data(), targets.data());
    const Status added =
        evaluator.add({count, x.data(), test.classes() > 0 ? labels.data() : nullptr,
                       test.target_count() > 0 ? targets.data() : nullptr});
    if (!added) return added.error();
  }
  return evaluator.take();
}

Status add_image_labels(const TrainedModel& trained, const EvaluateOptions& options,
                        InputSamples& samples) {
  const auto bytes = read_file(options.labels, "give --labels an existing file");
  if (!bytes) return bytes.error();
  const auto labels = parse_idx(*bytes, options.labels, IdxKind::labels);
  if (!labels) return labels.error();
  if (std::ssize(labels->values) != samples.count)
    return Error{concat(options.labels, ": found ", labels->values.size(), " labels for the ",
                        samples.count, " images of ", options.data,
                        "; give the labels that belong to these images")};
  for (const auto label : labels->values) {
    if (label >= trained.classes())
      return Error{concat(options.labels, ": found label ", int{label}, ", but the model has ",
                          trained.classes(), " classes; give labels of the same classes")};
    samples.classes.push_back(label);
  }
  return {};
}

Expected<ModelEvaluation> evaluate_file(const TrainedModel& trained,
                                        const EvaluateOptions& options) {
  const bool images = !options.labels.empty();
  if (trained.classes() == 0 && trained.model->output().count() > 1)
    return Error{concat("the model predicts ", trained.model->output().count(),
                        " numbers, and a table has one label; leave out --data")};
  auto samples = read_samples(trained, options.data, images ? Labels::ignored : Labels::required);
  if (!samples) return samples.error();
  if (images)
    if (const auto added = add_image_labels(trained, options, *samples); !added)
      return added.error();
  Evaluator evaluator(trained, options.data, samples->count);
  for (std::int64_t first = 0; first < samples->count; first += evaluator.batch()) {
    const Status added =
        evaluator.add({std::min(evaluator.batch(), samples->count - first),
                       samples->x.data() + first * trained.model->input().count(),
                       samples->classes.empty() ? nullptr : samples->classes.data() + first,
                       samples->targets.empty() ? nullptr : samples->targets.data() + first});
    if (!added) return added.error();
  }
  return evaluator.take();
}

}  // namespace

double ModelEvaluation::calibration_error() const {
  double sum = 0;
  for (const Bin& bin : bins) sum += std::abs(static_cast<double>(bin.correct) - bin.confidence);
  return predictions > 0 ? sum / static_cast<double>(predictions) : 0;
}

std::vector<ModelEvaluation::OfClass> ModelEvaluation::by_class() const {
  std::vector<OfClass> out(classes.size());
  std::vector<std::uint64_t> predicted(classes.size()), right(classes.size());
  for (const auto& [key, count] : confusion) {
    out[static_cast<std::size_t>(key.first)].samples += count;
    predicted[static_cast<std::size_t>(key.second)] += count;
    if (key.first == key.second) right[static_cast<std::size_t>(key.first)] += count;
  }
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto found = static_cast<double>(right[i]);
    out[i].precision = share(found, static_cast<double>(predicted[i]));
    out[i].recall = share(found, static_cast<double>(out[i].samples));
    out[i].f1 = share(2 * out[i].precision * out[i].recall, out[i].precision + out[i].recall);
  }
  return out;
}

Expected<ModelEvaluation> evaluate(const TrainedModel& trained, const EvaluateOptions& options) {
  if (options.data.empty() && !options.labels.empty())
    return Error{"--labels belongs to --data, a file of images; give both"};
  auto result = options.data.empty() ? evaluate_run(trained) : evaluate_file(trained, options);
  if (!result && options.data.empty())
    return Error{concat(trained.path, ": ", result.error().text)};
  return result;
}

}  // namespace leeway
