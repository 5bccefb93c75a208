#include "models/layers/norm.hpp"

#include "core/text.hpp"
#include "kernels/executor.hpp"

namespace leeway {

namespace {

/// The two arrays that forward saves for backward: means, and inverse deviations.
struct Kept {
  Kept(std::byte* bytes, std::int64_t count)
      : mean(reinterpret_cast<float*>(bytes)), inv_std(mean + count) {}
  float* mean;
  float* inv_std;
};

const float* vector(const ParameterView& view) {
  return view.front().data;
}

std::size_t two_arrays(std::int64_t count) {
  return 2 * static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace

Expected<Shape> BatchNorm::set_input(const Shape& input) {
  if (input.rank() != 1 && input.rank() != 3)
    return Error{concat("got samples of shape ", input, " and needs images or vectors")};
  channels_ = input[0];
  rows_ = input.count() / channels_;
  return input;
}

std::vector<ParameterSpec> BatchNorm::parameters() const {
  const Shape shape{channels_};
  return {
      {"weight", shape, plan::Init::ones},
      {"bias", shape, plan::Init::zeros},
      {.name = "running_mean",
       .shape = shape,
       .init = plan::Init::zeros,
       .average = spec_.momentum},
      {.name = "running_var", .shape = shape, .init = plan::Init::ones, .average = spec_.momentum}};
}

std::size_t BatchNorm::kept_bytes(std::int64_t) const {
  return two_arrays(channels_);
}

void BatchNorm::forward(const ForwardArgs& args) const {
  const auto& w = args.weights;
  if (!args.training)
    return args.on.batch_norm_inference(args.y, args.x, vector(w[0]), vector(w[1]), vector(w[2]),
                                        vector(w[3]), shape(args.batch));
  const Kept kept(args.kept, channels_);
  args.on.batch_norm_forward(args.y, kept.mean, kept.inv_std, args.x, vector(w[0]), vector(w[1]),
                             shape(args.batch));
}

void BatchNorm::backward(const BackwardArgs& args) const {
  const Kept kept(args.kept, channels_);
  const auto& g = args.gradients;
  if (shape(args.batch).rows > 1) {
    args.on.batch_norm_statistics(g[2].front().data, g[3].front().data, kept.mean, kept.inv_std,
                                  shape(args.batch));
  } else {
    // One row has no variance, so the running averages keep their values.
    for (std::size_t i = 2; i < 4; ++i)
      args.on.copy(g[i].front().data, vector(args.weights[i]),
                   static_cast<std::size_t>(channels_) * sizeof(float));
  }
  args.on.batch_norm_backward(args.dx, g[0].front().data, g[1].front().data, args.dy, args.x,
                              kept.mean, kept.inv_std, vector(args.weights[0]), shape(args.batch));
}

Expected<Shape> LayerNorm::set_input(const Shape& input) {
  if (input.rank() != 1 && input.rank() != 2)
    return Error{concat("got samples of shape ", input,
                        " and needs vectors or sequences of them; put a flatten layer before it")};
  features_ = input[input.rank() - 1];
  rows_ = input.count() / features_;
  return input;
}

std::vector<ParameterSpec> LayerNorm::parameters() const {
  const Shape shape{features_};
  return {{"weight", shape, plan::Init::ones}, {"bias", shape, plan::Init::zeros}};
}

std::size_t LayerNorm::kept_bytes(std::int64_t batch) const {
  return two_arrays(batch * rows_);
}

void LayerNorm::forward(const ForwardArgs& args) const {
  const auto of = shape(args.batch);
  const Kept kept(args.kept, of.rows);
  args.on.layer_norm_forward(args.y, kept.mean, kept.inv_std, args.x, vector(args.weights[0]),
                             vector(args.weights[1]), of);
}

void LayerNorm::backward(const BackwardArgs& args) const {
  const auto of = shape(args.batch);
  const Kept kept(args.kept, of.rows);
  args.on.layer_norm_backward(args.dx, args.gradients[0].front().data,
                              args.gradients[1].front().data, args.dy, args.x, kept.mean,
                              kept.inv_std, vector(args.weights[0]), of);
}

}  // namespace leeway
