#pragma once
// Shared by model tests: builders of models, their parameters in memory, random batches, and
// gradients by finite differences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/rng.hpp"
#include "kernels/threads.hpp"
#include "models/layout.hpp"
#include "models/pass.hpp"
#include "runtime/models.hpp"

namespace leeway::test {

using Floats = std::vector<float>;
using Layers = std::vector<plan::Layer>;

constexpr auto kSoftmax = plan::Loss::softmax_cross_entropy;
constexpr auto kSquares = plan::Loss::mean_squared_error;

/// Allowed relative error of a gradient against finite differences.
constexpr double kTolerance = 1e-3;

inline std::shared_ptr<const Model> built(const Layers& layers, plan::Loss loss, const Shape& input,
                                          int classes, std::int64_t targets) {
  auto model = Model::build(layers, loss, input, classes, targets);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return *model;
}

inline std::shared_ptr<const Model> classifier(const Layers& layers, const Shape& input,
                                               int classes) {
  return built(layers, plan::Loss::softmax_cross_entropy, input, classes, 0);
}

inline std::shared_ptr<const Model> regressor(const Layers& layers, const Shape& input,
                                              std::int64_t targets) {
  return built(layers, plan::Loss::mean_squared_error, input, 0, targets);
}

/// The error of building a model; empty on success.
inline std::string error_of(const Layers& layers, plan::Loss loss, const Shape& input, int classes,
                            std::int64_t targets) {
  const auto model = Model::build(layers, loss, input, classes, targets);
  return model ? "" : model.error().text;
}

/// A model's weights and gradients, in the blocks of a layout.
class Memory {
 public:
  explicit Memory(std::shared_ptr<const Model> model, std::size_t max_block_bytes = 4 << 20)
      : model_(std::move(model)), layout_(*model_, 1, max_block_bytes) {
    for (const Block& block : layout_.blocks()) {
      const auto floats = static_cast<std::size_t>(block.floats);
      weights_.emplace_back(floats);
      gradients_.emplace_back(floats, std::numeric_limits<float>::quiet_NaN());
    }
    std::vector<const float*> w;
    std::vector<float*> writable, g;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      w.push_back(weights_[i].data());
      writable.push_back(weights_[i].data());
      g.push_back(gradients_[i].data());
    }
    weight_slices_ = std::make_unique<ParameterSlices<const float>>(*model_, layout_, w);
    writable_slices_ = std::make_unique<ParameterSlices<float>>(*model_, layout_, writable);
    gradient_slices_ = std::make_unique<ParameterSlices<float>>(*model_, layout_, g);
  }

  void initialize(std::uint64_t seed) {
    for (std::size_t p = 0; p < model_->parameters().size(); ++p) {
      Floats values(static_cast<std::size_t>(model_->parameters()[p].spec.shape.count()));
      model_->initialize(static_cast<int>(p), seed, values.data());
      set(p, values);
    }
  }
  void set(std::size_t parameter, const Floats& values) {
    const std::int64_t row = row_floats(parameter);
    for (const auto& slice : writable_slices_->views()[parameter])
      std::copy_n(values.data() + slice.first_row * row, slice.rows * row, slice.data);
  }
  Floats gradient(std::size_t parameter) const {
    return gather(parameter, gradient_slices_->views()[parameter]);
  }
  Floats weight(std::size_t parameter) const {
    return gather(parameter, writable_slices_->views()[parameter]);
  }

  std::span<const ParameterView> weights() const { return weight_slices_->views(); }
  std::span<const GradientView> gradients() const { return gradient_slices_->views(); }
  const Layout& layout() const { return layout_; }

 private:
  std::int64_t row_floats(std::size_t parameter) const {
    return model_->parameters()[parameter].spec.shape.row_count();
  }
  Floats gather(std::size_t parameter, GradientView slices) const {
    Floats values;
    for (const auto& slice : slices)
      values.insert(values.end(), slice.data, slice.data + slice.rows * row_floats(parameter));
    return values;
  }

  std::shared_ptr<const Model> model_;
  Layout layout_;
  std::vector<Floats> weights_, gradients_;
  std::unique_ptr<ParameterSlices<const float>> weight_slices_;
  std::unique_ptr<ParameterSlices<float>> writable_slices_, gradient_slices_;
};

/// Random samples with random labels, targets and keys.
struct RandomBatch {
  RandomBatch(const Model& model, std::int64_t size, std::uint64_t seed) {
    Rng rng(seed);
    const auto fill = [&](Floats& values, std::int64_t count, double low) {
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(low + (1 - low) * rng.uniform()));
    };
    const std::int64_t outputs = model.output().count();
    const bool probabilities = model.loss() == plan::Loss::sigmoid_cross_entropy;
    fill(x, size * model.input().count(), -1);
    fill(targets, size * outputs, probabilities ? 0 : -1);
    for (std::int64_t b = 0; b < size; ++b) {
      const auto classes = static_cast<std::uint64_t>(std::max<std::int64_t>(outputs, 2));
      labels.push_back(static_cast<std::int32_t>(rng.below(classes)));
      keys.push_back(rng.next());
    }
    batch = {.size = size,
             .x = x.data(),
             .labels = labels.data(),
             .targets = targets.data(),
             .sample_keys = keys};
  }
  RandomBatch(const RandomBatch&) = delete;  // the batch points into the vectors
  RandomBatch& operator=(const RandomBatch&) = delete;

  Floats x, targets;
  std::vector<std::int32_t> labels;
  std::vector<std::uint64_t> keys;
  Batch batch;
};

inline void run_backward(Pass& pass, const Memory& memory) {
  for (int layer = pass.model().layers() - 1; layer >= 0; --layer)
    pass.backward(layer, memory.weights(), memory.gradients());
}

/// One step of gradient descent on `batch`. Returns the loss before the step. Statistics stay
/// unchanged.
inline double descend(Pass& pass, Memory& memory, const Batch& batch, float rate) {
  const double loss = pass.forward(batch, memory.weights()).loss;
  run_backward(pass, memory);
  const auto& parameters = pass.model().parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].spec.average > 0) continue;
    Floats weight = memory.weight(p);
    const Floats gradient = memory.gradient(p);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= rate * gradient[i];
    memory.set(p, weight);
  }
  return loss;
}

/// Compares the gradient of every trained parameter with central differences of the loss. Returns
/// the worst error, relative to the largest slope of its parameter or to 0.1 if that is larger.
inline double worst_gradient_error(const std::shared_ptr<const Model>& model, const Batch& batch,
                                   std::uint64_t seed) {
  kernels::use_one_compute_thread();
  Memory memory(model);
  memory.initialize(seed);
  Pass pass(model, batch.size, true);
  pass.forward(batch, memory.weights());
  run_backward(pass, memory);
  constexpr float kStep = 4e-3f;
  double worst = 0;
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    if (model->parameters()[p].spec.average > 0) continue;
    const Floats gradient = memory.gradient(p), weight = memory.weight(p);
    double error = 0, largest = 0.1;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const auto loss_at = [&](float value) {
        Floats moved = weight;
        moved[i] = value;
        memory.set(p, moved);
        return pass.forward(batch, memory.weights()).loss;
      };
      const float above = weight[i] + kStep, below = weight[i] - kStep;
      const double slope = (loss_at(above) - loss_at(below)) / static_cast<double>(above - below);
      const double difference = std::abs(slope - static_cast<double>(gradient[i]));
      LW_CHECK(std::isfinite(difference), model->parameters()[p].name, i, slope, gradient[i]);
      error = std::max(error, difference);
      largest = std::max(largest, std::abs(slope));
    }
    memory.set(p, weight);
    worst = std::max(worst, error / largest);
  }
  return worst;
}

inline double worst_gradient_error(const std::shared_ptr<const Model>& model,
                                   std::int64_t batch_size, std::uint64_t seed) {
  return worst_gradient_error(model, RandomBatch(*model, batch_size, seed).batch, seed);
}

}  // namespace leeway::test
