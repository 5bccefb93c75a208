#pragma once
// TrainedModel: a model with its trained weights, and the meaning of its inputs and outputs.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/model.hpp"
#include "models/pass.hpp"
#include "models/safetensors.hpp"
#include "plan/plan.hpp"

namespace leeway {

struct TrainedModel {
  std::string path;  // the run folder or the file of weights, for errors
  Plan plan;         // of the run; from a file of weights: name, seed, data, model and loss
  std::shared_ptr<const Preprocessing> preprocessing;  // null: data that a program makes
  std::shared_ptr<const Model> model;
  std::vector<NamedTensor> weights;  // in the model's order

  /// Classes of the data; 0 for numeric targets.
  int classes() const { return classes_; }
  /// The name of a class in the data; of text its character, or "space" or "newline".
  std::string class_name(int index) const;
  bool is_text() const;

  int classes_ = 0;
};

/// Loads a run folder, or a file of weights that a run wrote. Errors: a file that is missing or
/// damaged, and weights that do not fit the plan's model.
Expected<TrainedModel> load_trained(const std::string& run_or_weights);

/// Runs batches through a trained model, on the CPU. Not thread-safe.
class ForwardPass {
 public:
  /// For batches of up to batch() samples. The model must outlive it.
  explicit ForwardPass(const TrainedModel& trained);

  std::int64_t batch() const { return batch_; }
  /// x: (count, sample). labels: (count, labels of a sample), or null; targets: (count, outputs),
  /// or null. Without them, loss and correct answers have no meaning.
  PassResult run(std::int64_t count, const float* x, const std::int32_t* labels,
                 const float* targets);
  /// Of the last batch: (count, output), logits for a loss on logits.
  const float* outputs() const { return pass_.outputs(); }

 private:
  const Model& model_;
  std::int64_t batch_;
  Pass pass_;
  std::vector<RowSlice<const float>> rows_;
  std::vector<ParameterView> views_;
  std::vector<std::uint64_t> versions_;
  std::vector<std::int32_t> no_labels_;
  std::vector<float> no_targets_;
};

/// False for the outputs of a model that has diverged.
bool are_finite(std::span<const float> outputs);

/// What one sample's outputs say: for classes their probabilities, (labels, classes); otherwise the
/// predicted numbers in the unit of the data. `outputs`: (model output).
std::vector<double> interpret(const TrainedModel& trained, std::span<const float> outputs);

}  // namespace leeway
