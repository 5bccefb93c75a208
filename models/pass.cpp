#include <algorithm>

#include "core/check.hpp"
#include "kernels/finite.hpp"
#include "kernels/mean_squared_error.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "models/model.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// Where each layer's output lives, and what a pass is in the midst of.
struct Pass::State {
  static constexpr int kBatch =
      -1;  // in `buffer_of`: the batch's own memory, which is not ours to overwrite

  std::int64_t max_batch = 0;
  bool with_backward = false;
  int first_trained = 0;         // the first layer with parameters; backward stops there
  std::vector<int> buffer_of;    // per layer: index into `buffers` of its output, or kBatch
  std::vector<Blob> buffers;     // (max_batch, layer output)
  std::vector<Blob> kept;        // per layer
  std::vector<bool> overwrites;  // per layer: its output takes the place of its input
  Blob gradients[2];             // of the present layer's output, and of its input
  Blob scratch;

  Batch batch;             // of the last forward
  int next_backward = -1;  // the layer whose backward is due; -1 when none is
  int gradient = 0;        // which of `gradients` holds dy

  const float* output(int layer) const {
    const int buffer = layer < 0 ? kBatch : buffer_of[static_cast<std::size_t>(layer)];
    return buffer == kBatch ? batch.x : buffers[static_cast<std::size_t>(buffer)].as_floats();
  }

  /// Decides which layers share memory. An in-place layer overwrites its input unless that is the
  /// batch, or the layer that made it will want it back.
  void place_outputs(const Model& model) {
    int buffer = kBatch;
    bool wanted = true;  // whether the backward of whoever wrote `buffer` reads it
    for (int i = 0; i < model.layers(); ++i) {
      const Layer& layer = model.layer(i);
      const bool free = buffer != kBatch && !(wanted && with_backward);
      overwrites.push_back(layer.in_place() && free);
      if (!layer.is_view()) {
        if (!overwrites.back()) {
          buffer = static_cast<int>(buffers.size());
          buffers.push_back(Blob::floats(max_batch * model.shape_before(i + 1).count()));
        }
        wanted = layer.backward_reads_output();
      }
      buffer_of.push_back(buffer);
    }
  }

  std::int64_t largest_sample(const Model& model) const {
    std::int64_t largest = model.output().count();
    for (int i = first_trained + 1; i < model.layers(); ++i)
      largest = std::max(largest, model.shape_before(i).count());
    return largest;
  }
};

Pass::Pass(std::shared_ptr<const Model> model, std::int64_t max_batch, bool backward)
    : model_(std::move(model)), state_(std::make_shared<State>()) {
  LW_CHECK(model_ && max_batch >= 0, max_batch);
  State& s = *state_;
  s.max_batch = max_batch;
  s.with_backward = backward;
  while (s.first_trained < model_->layers() && model_->first_parameter(s.first_trained + 1) == 0)
    ++s.first_trained;
  s.place_outputs(*model_);
  std::size_t scratch = 0;
  for (int i = 0; i < model_->layers(); ++i) {
    s.kept.push_back(Blob::allocate(model_->layer(i).kept_bytes(max_batch)));
    scratch = std::max(scratch, model_->layer(i).scratch_bytes(max_batch));
  }
  if (!backward) return;
  s.scratch = Blob::allocate(scratch);
  for (auto& gradient : s.gradients) gradient = Blob::floats(max_batch * s.largest_sample(*model_));
}

PassResult Pass::forward(const Batch& batch, std::span<const ParameterView> weights) {
  State& s = *state_;
  LW_CHECK(batch.size >= 0 && batch.size <= s.max_batch, batch.size, s.max_batch);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  s.batch = batch;
  for (int i = 0; i < model_->layers(); ++i) {
    const Layer& layer = model_->layer(i);
    if (layer.is_view()) continue;
    const auto index = static_cast<std::size_t>(i);
    const int first = model_->first_parameter(i);
    const int count = model_->first_parameter(i + 1) - first;
    layer.forward({.batch = batch.size,
                   .x = s.output(i - 1),
                   .y = s.buffers[static_cast<std::size_t>(s.buffer_of[index])].mutable_floats(),
                   .kept = s.kept[index].mutable_data(),
                   .weights = weights.subspan(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(count)),
                   .sample_keys = batch.sample_keys});
  }
  s.gradient = 0;
  s.next_backward = s.with_backward ? model_->layers() - 1 : -1;
  float* dy = s.with_backward ? s.gradients[0].mutable_floats() : nullptr;
  const std::int64_t output_count = model_->output().count();
  if (model_->loss() == plan::Loss::softmax_cross_entropy) {
    LW_CHECK(batch.labels || batch.size == 0);
    const auto result =
        kernels::softmax_cross_entropy(dy, outputs(), batch.labels, batch.size, output_count);
    return {result.loss, result.correct};
  }
  LW_CHECK(batch.targets || batch.size == 0);
  return {kernels::mean_squared_error(dy, outputs(), batch.targets, batch.size * output_count), 0};
}

void Pass::backward(int index, std::span<const ParameterView> weights,
                    std::span<const GradientView> gradients) {
  State& s = *state_;
  LW_CHECK(index == s.next_backward && index >= 0, index, s.next_backward, s.with_backward);
  LW_CHECK(weights.size() == model_->parameters().size(), weights.size());
  LW_CHECK(gradients.size() == model_->parameters().size(), gradients.size());
  --s.next_backward;
  const Layer& layer = model_->layer(index);
  if (index < s.first_trained || layer.is_view()) return;
  const auto first = static_cast<std::size_t>(model_->first_parameter(index));
  const auto count = static_cast<std::size_t>(model_->first_parameter(index + 1)) - first;
  const int into = layer.in_place() ? s.gradient : 1 - s.gradient;
  layer.backward({.batch = s.batch.size,
                  .x = s.output(index - 1),
                  .y = s.output(index),
                  .dy = s.gradients[s.gradient].as_floats(),
                  .dx = index == s.first_trained ? nullptr : s.gradients[into].mutable_floats(),
                  .kept = s.kept[static_cast<std::size_t>(index)].mutable_data(),
                  .weights = weights.subspan(first, count),
                  .gradients = gradients.subspan(first, count),
                  .scratch = s.scratch.mutable_data()});
  s.gradient = into;
}

const float* Pass::outputs() const {
  return state_->output(model_->layers() - 1);
}

int Pass::first_non_finite_layer() const {
  for (int i = 0; i < model_->layers(); ++i) {
    const std::int64_t count = state_->batch.size * model_->shape_before(i + 1).count();
    if (kernels::find_non_finite(state_->output(i), count) >= 0) return i;
  }
  return model_->layers();
}

}  // namespace leeway
