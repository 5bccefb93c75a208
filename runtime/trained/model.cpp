#include "runtime/trained/model.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/files.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/load.hpp"
#include "models/weights_metadata.hpp"

namespace leeway {
namespace {

using Loaded = Expected<std::shared_ptr<const Preprocessing>>;

Loaded parse_preprocessing(std::string_view json, const std::string& name) {
  auto parsed = Preprocessing::from_json(json, name);
  if (!parsed) return parsed.error();
  return std::make_shared<const Preprocessing>(std::move(*parsed));
}

/// Null if the folder has none, as those of earlier versions.
Loaded read_preprocessing(const std::string& folder) {
  const std::string path = folder + "/preprocessing.json";
  if (!file_exists(path)) return std::shared_ptr<const Preprocessing>();
  const auto content = disk().read(path);
  if (!content) return content.error();
  return parse_preprocessing((*content)->text(), path);
}

Expected<Plan> read_plan(const std::string& folder) {
  auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  if (const auto valid = validate(*plan); !valid)
    return Error{concat(folder, "/plan.json: ", valid.error().text)};
  return plan;
}

/// Numbers that the model depends on.
struct DataForm {
  Shape sample;
  int classes = 0;
  std::int64_t targets = 0;
  std::int64_t labels = 1;
};

DataForm form_of(const Preprocessing& of) {
  if (of.kind == Preprocessing::Kind::text)
    return {of.shape, static_cast<int>(of.characters.size()), 0, of.shape.count()};
  const int classes = static_cast<int>(of.classes.size());
  return {of.shape, classes, classes > 0 ? 0 : 1, 1};
}

DataForm form_of(const Dataset& data) {
  return {data.sample_shape(), data.classes(), data.target_count(), data.label_count()};
}

/// The parameters in the model's order.
Expected<std::vector<NamedTensor>> sorted(std::vector<NamedTensor> tensors, const Model& model) {
  std::map<std::string, NamedTensor*> by_name;
  for (auto& tensor : tensors) by_name[tensor.name] = &tensor;
  std::vector<NamedTensor> out;
  for (const auto& parameter : model.parameters()) {
    const auto found = by_name.find(parameter.name);
    const bool fits = found != by_name.end() && found->second->shape == parameter.spec.shape &&
                      found->second->dtype == DType::f32;
    if (!fits)
      return Error{concat("the weights do not match the plan's model: ", parameter.name, " is ",
                          found == by_name.end() ? std::string("missing")
                                                 : concat("of shape ", found->second->shape),
                          " and should be of shape ", parameter.spec.shape,
                          "; give the folder of a single run")};
    out.push_back(std::move(*found->second));
  }
  return out;
}

Expected<TrainedModel> assemble(TrainedModel out, std::vector<NamedTensor> tensors) {
  if (out.plan.simulated && out.plan.simulated->cost_only)
    return Error{"the run has no trained weights; train again without --gradients none"};
  DataForm form;
  if (!out.preprocessing) {
    auto data = load_data(out.plan.data, out.plan.seed);
    if (!data) return data.error();
    out.preprocessing = data->preprocessing;
    form = form_of(*data->train);
  } else {
    form = form_of(*out.preprocessing);
    // Data can have several numbers to predict, one for each output.
    const auto* last = std::get_if<plan::Linear>(&out.plan.model.back());
    if (form.classes == 0 && last) form.targets = last->outputs;
  }
  auto model = Model::build(out.plan.model, out.plan.loss, form.sample, form.classes, form.targets,
                            form.labels);
  if (!model) return model.error();
  out.model = std::move(*model);
  out.classes_ = form.classes;
  auto weights = sorted(std::move(tensors), *out.model);
  if (!weights) return weights.error();
  out.weights = std::move(*weights);
  return out;
}

Expected<TrainedModel> load_folder(const std::string& folder, const std::string& weights) {
  TrainedModel out{.path = folder};
  auto plan = read_plan(folder);
  if (!plan) return plan.error();
  out.plan = std::move(*plan);
  auto preprocessing = read_preprocessing(folder);
  if (!preprocessing) return preprocessing.error();
  out.preprocessing = std::move(*preprocessing);
  if (!file_exists(weights))
    return Error{
        "has no weights.safetensors, so the run has not finished; let it finish, or train "
        "again"};
  auto file = read_safetensors(weights);
  if (!file) return file.error();
  return assemble(std::move(out), std::move(file->tensors));
}

Expected<TrainedModel> load_file(const std::string& path) {
  auto file = read_safetensors(path);
  if (!file) return file.error();
  const auto plan_text = file->metadata.find(kPlanKey);
  if (plan_text == file->metadata.end()) {
    const std::string folder = folder_of(path);
    if (file_exists(folder + "/plan.json")) return load_folder(folder, path);
    return Error{
        "its metadata has no plan, and there is no plan.json beside it; give a file that "
        "Leeway wrote, or a run folder"};
  }
  TrainedModel out{.path = path};
  auto plan = plan_from_json(plan_text->second, "leeway.plan");
  if (!plan) return plan.error();
  if (const auto valid = validate(*plan); !valid) return valid.error();
  out.plan = std::move(*plan);
  const auto text = file->metadata.find(kPreprocessingKey);
  if (text != file->metadata.end()) {
    auto parsed = parse_preprocessing(text->second, "leeway.preprocessing");
    if (!parsed) return parsed.error();
    out.preprocessing = std::move(*parsed);
  }
  return assemble(std::move(out), std::move(file->tensors));
}

}  // namespace

std::string TrainedModel::class_name(int index) const {
  const auto at = static_cast<std::size_t>(index);
  if (!preprocessing) return concat(index);
  if (is_text() && at < preprocessing->characters.size()) {
    const std::string& character = preprocessing->characters[at];
    return character == " " ? "space" : character == "\n" ? "newline" : character;
  }
  const auto& names = preprocessing->classes;
  return at < names.size() ? names[at] : concat(index);
}

bool TrainedModel::is_text() const {
  return preprocessing && preprocessing->kind == Preprocessing::Kind::text;
}

Expected<TrainedModel> load_trained(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (!folder && !file_exists(path))
    return Error{concat(path, ": does not exist; give a run folder, such as runs/fashion-mlp-...")};
  if (folder && !file_exists(path + "/plan.json"))
    return Error{concat(path, ": is not a run folder; give one, such as runs/fashion-mlp-...")};
  auto loaded = folder ? load_folder(path, path + "/weights.safetensors") : load_file(path);
  if (loaded) {
    loaded->path = path;
    return loaded;
  }
  const std::string& text = loaded.error().text;
  return text.find(path) != std::string::npos ? loaded : Error{concat(path, ": ", text)};
}

ForwardPass::ForwardPass(const TrainedModel& trained)
    : model_(*trained.model),
      batch_(evaluation_batch(model_)),
      pass_(trained.model, batch_, false),
      versions_(model_.parameters().size(), 1),
      no_labels_(static_cast<std::size_t>(batch_ * model_.labels())),
      no_targets_(static_cast<std::size_t>(batch_ * model_.output().count())) {
  for (const auto& tensor : trained.weights)
    rows_.push_back({0, tensor.shape.rows(), tensor.data.as_floats()});
  for (const auto& row : rows_) views_.push_back({&row, 1});
}

PassResult ForwardPass::run(std::int64_t count, const float* x, const std::int32_t* labels,
                            const float* targets) {
  if (!labels && !targets) {
    if (model_.loss() == plan::Loss::softmax_cross_entropy)
      labels = no_labels_.data();
    else
      targets = no_targets_.data();
  }
  const Batch batch{count, x, labels, targets, {}};
  return pass_.forward(batch, views_, versions_);
}

bool are_finite(std::span<const float> outputs) {
  return std::ranges::all_of(outputs, [](float y) { return std::isfinite(y); });
}

std::vector<double> interpret(const TrainedModel& trained, std::span<const float> outputs) {
  std::vector<double> values(outputs.begin(), outputs.end());
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  switch (trained.plan.loss) {
    case plan::Loss::softmax_cross_entropy: {
      const auto classes = static_cast<std::size_t>(trained.classes());
      for (std::size_t at = 0; at + classes <= values.size(); at += classes) {
        const auto row = std::span(values).subspan(at, classes);
        const double largest = *std::max_element(row.begin(), row.end());
        double sum = 0;
        for (double& value : row) sum += value = std::exp(value - largest);
        for (double& value : row) value /= sum;
      }
      return values;
    }
    case plan::Loss::sigmoid_cross_entropy:
      for (double& value : values) value = sigmoid(value);
      if (trained.classes() == 2) return {1 - values[0], values[0]};
      break;
    case plan::Loss::mean_squared_error:
      break;
  }
  if (trained.preprocessing)
    for (double& value : values)
      value = value * trained.preprocessing->target_deviation + trained.preprocessing->target_mean;
  return values;
}

}  // namespace leeway
