#include "models/layer_times.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/check.hpp"
#include "kernels/threads.hpp"
#include "models/layout.hpp"
#include "models/pieces.hpp"

namespace leeway {

namespace {

std::int64_t parameter_bytes(const Model& model, int layer) {
  std::int64_t bytes = 0;
  for (int p = model.first_parameter(layer); p < model.first_parameter(layer + 1); ++p)
    bytes += model.parameters()[static_cast<std::size_t>(p)].spec.shape.count() * kFloatBytes;
  return bytes;
}

/// Initial weights of a whole model, and memory for their gradients.
class Parameters {
 public:
  explicit Parameters(const Model& model) : layout_(model, 1, limits::kMaxBlockBytes) {
    std::vector<float*> weights, gradients;
    for (const Block& block : layout_.blocks()) {
      weights_.push_back(Blob::floats(block.floats));
      gradients_.push_back(Blob::floats(block.floats));
      weights.push_back(weights_.back().mutable_floats());
      gradients.push_back(gradients_.back().mutable_floats());
    }
    initialize(model, weights);
    weight_slices_ = std::make_unique<ParameterSlices<const float>>(
        model, layout_, std::vector<const float*>(weights.begin(), weights.end()));
    gradient_slices_ = std::make_unique<ParameterSlices<float>>(model, layout_, gradients);
  }

  std::span<const ParameterView> weights() const { return weight_slices_->views(); }
  std::span<const GradientView> gradients() const { return gradient_slices_->views(); }

 private:
  void initialize(const Model& model, const std::vector<float*>& blocks) {
    constexpr std::uint64_t kSeed = 1;
    std::vector<std::vector<float>> values(model.parameters().size());
    for (std::size_t p = 0; p < values.size(); ++p) {
      values[p].resize(static_cast<std::size_t>(model.parameters()[p].spec.shape.count()));
      model.initialize(static_cast<int>(p), kSeed, values[p].data());
    }
    for (const Block& block : layout_.blocks())
      for (const BlockSlice& slice : block.slices) {
        const auto& whole = values[static_cast<std::size_t>(slice.parameter)];
        std::copy_n(whole.data() + slice.first, slice.floats,
                    blocks[block.id.value()] + slice.offset);
      }
  }

  Layout layout_;
  std::vector<Blob> weights_, gradients_;
  std::unique_ptr<ParameterSlices<const float>> weight_slices_;
  std::unique_ptr<ParameterSlices<float>> gradient_slices_;
};

std::int64_t median_ns(std::vector<double>& seconds) {
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return std::llround(*middle * 1e9);
}

}  // namespace

std::vector<LayerTime> estimated_times(const Model& model, std::int64_t batch,
                                       double flops_per_second, double bytes_per_second) {
  LW_CHECK(batch >= 1 && flops_per_second > 0 && bytes_per_second > 0, batch, flops_per_second,
           bytes_per_second);
  const auto wanted = wanted_gradients(model);
  std::vector<LayerTime> times;
  for (int i = 0; i < model.layers(); ++i) {
    const Layer& layer = model.layer(i);
    LayerTime& time = times.emplace_back();
    if (layer.is_view()) continue;
    const std::int64_t weights = parameter_bytes(model, i);
    const std::int64_t ways = model.is_sum(i) ? 2 : 1;
    const std::int64_t bytes =
        batch * kFloatBytes *
            (ways * model.output_of(model.input_of(i)).count() + model.output_of(i).count()) +
        weights;
    const auto ns =
        std::llround(1e9 * std::max(static_cast<double>(batch * layer.flops()) / flops_per_second,
                                    static_cast<double>(bytes) / bytes_per_second));
    const int input = model.input_of(i);
    time.forward = ns;
    if (input != Model::kBatch && wanted[static_cast<std::size_t>(input)]) time.backward_input = ns;
    if (weights > 0) time.backward_weights = ns;
  }
  return times;
}

std::vector<LayerTime> measured_times(const std::shared_ptr<const Model>& model, const Batch& batch,
                                      std::shared_ptr<Executor> on) {
  constexpr int kWarmUp = 2, kRepeats = 9;
  kernels::use_one_compute_thread();
  const Parameters parameters(*model);
  const auto profile = std::make_shared<Profile>();
  Pass pass(model, batch.size, true, {.on = std::move(on), .packed = nullptr, .profile = profile});
  // One version for all passes: the warm-up packs the weights, as most micro-batches find them.
  const std::vector<std::uint64_t> versions(model->parameters().size(), 1);
  std::map<std::pair<std::string, std::string>, std::vector<double>> seconds;
  std::map<std::pair<std::string, std::string>, double> before;
  for (int repeat = 0; repeat < kWarmUp + kRepeats; ++repeat) {
    pass.forward(batch, parameters.weights(), versions);
    for (int layer = model->layers() - 1; layer >= 0; --layer)
      pass.backward(layer, parameters.weights(), parameters.gradients());
    for (const auto& row : profile->rows()) {
      double& previous = before[{row.where, row.what}];
      if (repeat >= kWarmUp) seconds[{row.where, row.what}].push_back(row.seconds - previous);
      previous = row.seconds;
    }
  }
  auto times = estimated_times(*model, batch.size, 1e9, 1e9);
  for (int i = 0; i < model->layers(); ++i) {
    LayerTime& time = times[static_cast<std::size_t>(i)];
    const std::int64_t backward_passes =
        (time.backward_input > 0 ? 1 : 0) + (time.backward_weights > 0 ? 1 : 0);
    const std::int64_t backward = median_ns(seconds[{model->layer_name(i), "backward"}]);
    time.forward = median_ns(seconds[{model->layer_name(i), "forward"}]);
    if (time.backward_input > 0) time.backward_input = backward / backward_passes;
    if (time.backward_weights > 0)
      time.backward_weights = backward - (backward_passes == 2 ? time.backward_input : 0);
  }
  return times;
}

}  // namespace leeway
