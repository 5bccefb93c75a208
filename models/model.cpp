#include "models/model.hpp"

#include <algorithm>
#include <cmath>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/layers/make.hpp"
#include "models/layers/sum.hpp"

namespace leeway {

namespace {

/// Separates initial weights from the other random streams of a run's seed.
constexpr std::uint64_t kInitStream = 0x696e697469616c;

Error needs_targets(std::string_view loss) {
  return Error{concat("loss: ", loss,
                      " needs data with numeric targets, but this data has classes; use "
                      "softmax_cross_entropy")};
}

Status check_output(const Shape& output, std::int64_t needed, std::string_view of) {
  if (output == Shape{needed} || (output.rank() < 3 && output.count() == needed)) return {};
  return Error{concat("model: its output is ", output, ", but the data", of,
                      "; end it with linear, outputs = ", needed)};
}

Status check_classes(const Shape& output, int classes, std::int64_t labels) {
  if (classes <= 0)
    return Error{
        "loss: softmax_cross_entropy needs data with classes, but this data has numeric targets; "
        "use mean_squared_error"};
  if (output == Shape{labels, classes} || (labels == 1 && output == Shape{classes})) return {};
  if (labels == 1)
    return Error{concat("model: its output is ", output, ", but the data has ", classes,
                        " classes; end it with linear, outputs = ", classes)};
  return Error{concat("model: its output is ", output, ", but the data has ", labels,
                      " labels per sample and ", classes,
                      " classes; end it with unembedding, or linear, outputs = ", classes)};
}

Status check_loss(plan::Loss loss, const Shape& output, int classes, std::int64_t target_count,
                  std::int64_t labels) {
  switch (loss) {
    case plan::Loss::softmax_cross_entropy:
      return check_classes(output, classes, labels);
    case plan::Loss::sigmoid_cross_entropy:
      if (classes == 2) return check_output(output, 1, " has two classes, which need one output");
      if (target_count <= 0) return needs_targets("sigmoid_cross_entropy");
      break;
    case plan::Loss::mean_squared_error:
      if (target_count <= 0) return needs_targets("mean_squared_error");
      break;
  }
  return check_output(output, target_count, concat("'s targets are ", Shape{target_count}));
}

}  // namespace

/// Expands descriptions into nodes, including the layers inside of residual blocks.
class Model::Builder {
 public:
  Builder(Model& model, int classes, std::vector<bool> frozen, std::vector<Precision> precisions)
      : model_(model),
        classes_(classes),
        frozen_(std::move(frozen)),
        precisions_(std::move(precisions)) {}

  /// Adds `layers` after node `input` and returns the last node. `path` is the prefix of their
  /// names: "" or "3.body.".
  Expected<int> add_chain(const std::vector<plan::Layer>& layers, int input,
                          const std::string& path) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string place = concat(path, i);
      if (path.empty()) {
        is_frozen_ = i < frozen_.size() && frozen_[i];
        precision_ = i < precisions_.size() ? precisions_[i] : Precision::fp32;
      }
      const auto* residual = std::get_if<plan::Residual>(&layers[i]);
      const auto added =
          residual ? add_residual(*residual, input, place) : add_layer(layers[i], input, place);
      if (!added) return added.error();
      input = *added;
    }
    return input;
  }

 private:
  Expected<int> add_layer(const plan::Layer& description, int input, const std::string& path) {
    const int index = model_.layers();
    auto layer = make_layer(description,
                            {.salt = static_cast<std::uint32_t>(index),
                             .classes = classes_,
                             .precision = precision_,
                             .table = table_ == kNone ? Shape() : parameter(table_).spec.shape});
    if (!layer) return Error{concat("model: layer ", path, ": ", layer.error().text)};
    const int borrowed = (*layer)->borrows_embedding() ? table_ : kNone;
    const auto added =
        append({.path = path, .layer = std::move(*layer), .input = input, .borrowed = borrowed});
    if (!added) return added;
    const bool own = model_.first_parameter_.back() < static_cast<int>(model_.parameters_.size());
    LW_CHECK(!own || borrowed == kNone, path);
    if (std::holds_alternative<plan::Embedding>(description))
      table_ = model_.first_parameter_.back();
    return added;
  }

  Expected<int> add_residual(const plan::Residual& residual, int input, const std::string& path) {
    const auto body = add_chain(residual.body, input, path + ".body.");
    if (!body) return body;
    const auto shortcut = add_chain(residual.shortcut, input, path + ".shortcut.");
    if (!shortcut) return shortcut;
    const Shape& a = model_.output_of(*body);
    const Shape& b = model_.output_of(*shortcut);
    if (a != b)
      return Error{concat("model: layer ", path, " (residual): its body gives samples of shape ", a,
                          " and its shortcut ", b,
                          ", which cannot be added; make a shortcut of one conv2d with the body's "
                          "outputs and stride")};
    return append({.path = path,
                   .layer = std::make_unique<Sum>(),
                   .input = *body,
                   .other = *shortcut,
                   .is_sum = true});
  }

  Expected<int> append(Node node) {
    const int index = model_.layers();
    const auto output = node.layer->set_input(model_.output_of(node.input));
    const auto name = [&] { return concat("layer ", node.path, " (", node.layer->kind(), ")"); };
    if (!output) return Error{concat("model: ", name(), " ", output.error().text)};
    if (output->count() <= 0)
      return Error{concat("model: ", name(), " gives samples of shape ", *output,
                          ", which are empty; check its arguments")};
    node.output = *output;
    model_.first_parameter_.push_back(static_cast<int>(model_.parameters_.size()));
    for (auto& spec : node.layer->parameters()) {
      std::string parameter =
          node.layer->names_parameters() ? spec.name : concat(node.path, ".", spec.name);
      const bool frozen = is_frozen_ && spec.average == 0;
      model_.parameters_.push_back({std::move(parameter), index, std::move(spec), frozen});
    }
    node.frozen = is_frozen_;
    model_.nodes_.push_back(std::move(node));
    return index;
  }

  const Parameter& parameter(int index) const {
    return model_.parameters_[static_cast<std::size_t>(index)];
  }

  Model& model_;
  const int classes_;
  const std::vector<bool> frozen_;
  const std::vector<Precision> precisions_;
  bool is_frozen_ = false;  // the current layer of the list
  Precision precision_{};   // of that layer
  int table_ = kNone;       // the weight of the latest embedding
};

Expected<std::shared_ptr<const Model>> Model::build(const std::vector<plan::Layer>& layers,
                                                    plan::Loss loss, const Shape& input,
                                                    int classes, std::int64_t target_count,
                                                    std::int64_t labels, std::vector<bool> frozen,
                                                    std::vector<Precision> precisions) {
  LW_CHECK(labels >= 1, labels);
  if (layers.empty()) return Error{"model: it has no layers; add at least one, such as linear"};
  if (input.count() <= 0) return Error{concat("data: samples of shape ", input, " are empty")};
  std::shared_ptr<Model> model(new Model);
  model->loss_ = loss;
  model->labels_ = labels;
  model->input_ = input;
  Builder builder(*model, classes, std::move(frozen), std::move(precisions));
  if (const auto last = builder.add_chain(layers, kBatch, ""); !last) return last.error();
  model->first_parameter_.push_back(static_cast<int>(model->parameters_.size()));
  if (auto status = check_loss(loss, model->output(), classes, target_count, labels); !status)
    return status.error();
  return std::shared_ptr<const Model>(std::move(model));
}

std::string Model::layer_name(int index) const {
  return concat("layer ", node(index).path, " (", layer(index).kind(), ")");
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_)
    if (parameter.spec.average == 0) count += parameter.spec.shape.count();
  return count;
}

std::int64_t Model::trained_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_)
    if (parameter.spec.average == 0 && !parameter.frozen) count += parameter.spec.shape.count();
  return count;
}

bool Model::has_weights(int index) const {
  const auto trained = [&](int parameter) {
    return !parameters_[static_cast<std::size_t>(parameter)].frozen;
  };
  for (int i = first_parameter(index); i < first_parameter(index + 1); ++i)
    if (trained(i)) return true;
  const int borrowed = borrowed_parameter(index);
  return borrowed != kNone && trained(borrowed);
}

std::int64_t Model::flops_per_sample() const {
  std::int64_t flops = 0;
  for (const auto& node : nodes_) flops += node.layer->flops();
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
      return fill([&] { return spec.deviation * rng.normal(); });
    case plan::Init::zeros:
      return fill([] { return 0.0; });
    case plan::Init::ones:
      return fill([] { return 1.0; });
  }
}

}  // namespace leeway
