#pragma once
// ModelMemory: weights, gradients and velocities of a model in blocks, laid out as in a worker and
// its shards.
#include <memory>
#include <vector>

#include "core/limits.hpp"
#include "models/layout.hpp"
#include "models/pass.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway::bench {

class ModelMemory {
 public:
  ModelMemory(std::shared_ptr<const Model> model, std::shared_ptr<Executor> on)
      : model_(std::move(model)), on_(std::move(on)), layout_(*model_, 1, limits::kMaxBlockBytes) {
    std::vector<const float*> w;
    std::vector<float*> g;
    for (const Block& block : layout_.blocks()) {
      Blob weights = Blob::floats(block.floats);
      std::fill_n(weights.mutable_floats(), block.floats, 0.0f);
      for (const auto& slice : block.slices) {
        const Shape& shape =
            model_->parameters()[static_cast<std::size_t>(slice.parameter)].spec.shape;
        std::vector<float> whole(static_cast<std::size_t>(shape.count()));
        model_->initialize(slice.parameter, 1, whole.data());
        std::copy_n(whole.data() + slice.first, slice.floats,
                    weights.mutable_floats() + slice.offset);
      }
      weights_.push_back(on_->fetch(weights));
      for (auto* blobs : {&gradients_, &velocities_}) {
        blobs->push_back(on_->floats(block.floats));
        on_->zero(blobs->back().mutable_data(), blobs->back().size());
      }
      w.push_back(weights_.back().as_floats());
      g.push_back(gradients_.back().mutable_floats());
    }
    weight_slices_ = std::make_unique<ParameterSlices<const float>>(*model_, layout_, w);
    gradient_slices_ = std::make_unique<ParameterSlices<float>>(*model_, layout_, g);
  }

  /// Forward and backward of one batch, and the update unless `optimizer` is null.
  void step(Pass& pass, const Batch& batch, const Optimizer* optimizer) {
    pass.start_forward(batch, weight_slices_->views());
    for (int layer = model_->layers() - 1; layer >= 0; --layer)
      pass.backward(layer, weight_slices_->views(), gradient_slices_->views());
    if (optimizer) update(*optimizer);
    pass.result();
  }

 private:
  void update(const Optimizer& optimizer) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      kernels::UpdateBuffers buffers{.count = layout_.blocks()[i].floats,
                                     .w_out = weights_[i].mutable_floats(),
                                     .w = weights_[i].as_floats(),
                                     .g = gradients_[i].as_floats()};
      buffers.state[0] = buffers.state_out[0] = velocities_[i].mutable_floats();
      optimizer.update(*on_, buffers, {.weight = 1, .learning_rate = 0.001, .progress = 1});
    }
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<Executor> on_;
  Layout layout_;
  std::vector<Blob> weights_, gradients_, velocities_;
  std::unique_ptr<ParameterSlices<const float>> weight_slices_;
  std::unique_ptr<ParameterSlices<float>> gradient_slices_;
};

}  // namespace leeway::bench
