#pragma once
// Evaluates a trained model: loss, accuracy, confusion of classes, and calibration.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/trained/model.hpp"

namespace leeway {

struct EvaluateOptions {
  std::string data;    // a table, or a file of images; empty: the test data of the run
  std::string labels;  // of a file of images
};

/// The result of a trained model on labelled samples.
struct ModelEvaluation {
  std::string name;  // of the run
  std::string data;  // what it was evaluated on
  std::int64_t samples = 0;
  std::int64_t predictions = 0;  // one per label of a sample
  double loss = 0;

  // With classes:
  double accuracy = 0;
  std::vector<std::string> classes;
  /// Predictions by (class of the data, predicted class); no entry: none.
  std::map<std::pair<int, int>, std::uint64_t> confusion;
  /// Predictions by confidence, the probability of the predicted class, in bins of equal width.
  struct Bin {
    std::uint64_t count = 0;
    std::uint64_t correct = 0;
    double confidence = 0;  // sum
  };
  static constexpr std::size_t kBins = 15;
  std::array<Bin, kBins> bins{};

  // With numeric targets, in the unit of the data:
  double mean_absolute_error = 0;
  double root_mean_square_error = 0;
  double explained_variance = 0;                    // R squared; NaN if all targets are equal
  std::vector<std::pair<double, double>> examples;  // some targets with their predictions

  bool has_classes() const { return !classes.empty(); }
  /// The mean of |accuracy - confidence| over the predictions, by bins (Guo et al., "On Calibration
  /// of Modern Neural Networks", 2017).
  double calibration_error() const;

  struct OfClass {
    std::uint64_t samples = 0;  // of the class in the data
    double precision = 0;       // share of the predictions of the class that are right
    double recall = 0;          // share of its samples that are found
    double f1 = 0;              // their harmonic mean
  };
  /// By class; a quotient of zeros is 0.
  std::vector<OfClass> by_class() const;
};

/// Errors: data that cannot be read or does not fit, and a run's data that has changed since.
Expected<ModelEvaluation> evaluate(const TrainedModel& trained,
                                   const EvaluateOptions& options = {});

/// The evaluation as text for the terminal.
std::string text_of(const ModelEvaluation& evaluation);

/// An SVG picture: the confusion of the classes and the calibration, or predictions over targets.
std::string picture_of(const ModelEvaluation& evaluation);

}  // namespace leeway
