#include "models/model.hpp"

#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/layers/make.hpp"

namespace leeway {

namespace {

/// Keeps initial weights apart from all else that is drawn from a run's seed.
constexpr std::uint64_t kInitStream = 0x696e697469616c;
/// Standard deviation of plan::Init::normal.
constexpr double kNormalDeviation = 0.01;

Status check_loss(plan::Loss loss, const Shape& output, int classes, std::int64_t target_count) {
  if (loss == plan::Loss::softmax_cross_entropy) {
    if (classes <= 0)
      return Error{
          "loss: softmax_cross_entropy needs data with classes, and these have numbers to "
          "predict; use mean_squared_error"};
    if (output != Shape{classes})
      return Error{concat("model: its output is ", output, ", and the data have ", classes,
                          " classes; end it with linear, outputs = ", classes)};
    return {};
  }
  if (target_count <= 0)
    return Error{
        "loss: mean_squared_error needs data with numbers to predict, and these have "
        "classes; use softmax_cross_entropy"};
  if (output.count() != target_count)
    return Error{concat("model: its output is ", output, ", and the data's targets are ",
                        Shape{target_count}, "; end it with linear, outputs = ", target_count)};
  return {};
}

}  // namespace

Expected<std::shared_ptr<const Model>> Model::build(const std::vector<plan::Layer>& layers,
                                                    plan::Loss loss, const Shape& input,
                                                    int classes, std::int64_t target_count) {
  if (layers.empty()) return Error{"model: it has no layers; add at least one, such as linear"};
  if (input.count() <= 0) return Error{concat("data: samples of shape ", input, " are empty")};
  std::shared_ptr<Model> model(new Model);
  model->loss_ = loss;
  model->shapes_.push_back(input);
  for (const auto& description : layers) {
    const int index = model->layers();
    auto layer = make_layer(description);
    if (!layer) return Error{concat("model: layer ", index, ": ", layer.error().text)};
    model->layers_.push_back(std::move(*layer));
    auto output = model->layers_.back()->set_input(model->shapes_.back());
    if (!output)
      return Error{concat("model: ", model->layer_name(index), " ", output.error().text)};
    if (output->count() <= 0)
      return Error{concat("model: ", model->layer_name(index), " gives samples of shape ", *output,
                          ", which are empty; check its arguments")};
    model->shapes_.push_back(*output);
    model->first_parameter_.push_back(static_cast<int>(model->parameters_.size()));
    for (auto& spec : model->layers_.back()->parameters()) {
      std::string name = concat(index, ".", spec.name);
      model->parameters_.push_back({std::move(name), index, std::move(spec)});
    }
  }
  model->first_parameter_.push_back(static_cast<int>(model->parameters_.size()));
  if (auto status = check_loss(loss, model->output(), classes, target_count); !status)
    return status.error();
  return std::shared_ptr<const Model>(std::move(model));
}

std::string Model::layer_name(int index) const {
  return concat("layer ", index, " (", layer(index).kind(), ")");
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += parameter.spec.shape.count();
  return count;
}

std::int64_t Model::flops_per_sample() const {
  std::int64_t flops = 0;
  for (const auto& layer : layers_) flops += layer->flops();
  return flops;
}

void Model::initialize(int index, std::uint64_t seed, float* out) const {
  const ParameterSpec& spec = parameters_[static_cast<std::size_t>(index)].spec;
  const std::span<float> values(out, static_cast<std::size_t>(spec.shape.count()));
  Rng rng = Rng::stream(seed, kInitStream, static_cast<std::uint64_t>(index));
  const double fan_in = static_cast<double>(spec.fan_in);
  const double fan_out = static_cast<double>(spec.fan_out);
  const auto fill = [&](auto draw) {
    for (float& value : values) value = static_cast<float>(draw());
  };
  switch (spec.init) {
    case plan::Init::he:
      return fill([&, d = std::sqrt(2 / fan_in)] { return d * rng.normal(); });
    case plan::Init::xavier:
      return fill([&, bound = std::sqrt(6 / (fan_in + fan_out))] {
        return bound * (2 * rng.uniform() - 1);
      });
    case plan::Init::normal:
      return fill([&] { return kNormalDeviation * rng.normal(); });
    case plan::Init::zeros:
      return fill([] { return 0.0; });
  }
}

}  // namespace leeway
