#pragma once
// What model tests share: models in a line, their parameters in memory, and batches.
#include <cstdint>
#include <memory>
#include <vector>

#include "core/rng.hpp"
#include "kernels/threads.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"

namespace leeway::test {

using Floats = std::vector<float>;
using Layers = std::vector<plan::Layer>;

inline plan::Layer linear(std::uint32_t outputs, plan::Init init = plan::Init::he) {
  return plan::Linear{outputs, init};
}
inline const plan::Layer relu = plan::Relu{};
inline const plan::Layer flatten = plan::Flatten{};

inline std::shared_ptr<const Model> classifier(const Layers& layers, const Shape& input,
                                               int classes) {
  auto model = Model::build(layers, plan::Loss::softmax_cross_entropy, input, classes, 0);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return *model;
}

inline std::shared_ptr<const Model> regressor(const Layers& layers, const Shape& input,
                                              std::int64_t targets) {
  auto model = Model::build(layers, plan::Loss::mean_squared_error, input, 0, targets);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return *model;
}

/// One model's weights and gradients in the blocks of a layout.
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

/// Random samples with random labels and targets.
struct RandomBatch {
  RandomBatch(const Model& model, std::int64_t size, std::uint64_t seed) {
    Rng rng(seed);
    const auto fill = [&](Floats& values, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(2 * rng.uniform() - 1));
    };
    fill(x, size * model.input().count());
    fill(targets, size * model.output().count());
    for (std::int64_t b = 0; b < size; ++b)
      labels.push_back(
          static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(model.output().count()))));
    batch = {.size = size,
             .x = x.data(),
             .labels = labels.data(),
             .targets = targets.data(),
             .sample_keys = {}};
  }
  Floats x, targets;
  std::vector<std::int32_t> labels;
  Batch batch;
};

inline void run_backward(Pass& pass, const Memory& memory) {
  for (int layer = pass.model().layers() - 1; layer >= 0; --layer)
    pass.backward(layer, memory.weights(), memory.gradients());
}

}  // namespace leeway::test
