#include "cli/partition_model.hpp"

#include "cli/commands.hpp"
#include "cli/manifest.hpp"
#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "runtime/models.hpp"

namespace leeway::cli {
namespace {

/// The image size of Fashion-MNIST and MNIST.
const Shape kImage{1, 28, 28};
constexpr int kClasses = 10;

struct Named {
  const char* name;
  std::vector<plan::Layer> layers;
};

std::vector<Named> models_by_name() {
  return {{"logistic_regression", logistic_regression(kClasses)},
          {"mlp", mlp({512, 256}, kClasses)},
          {"lenet5", lenet5(kClasses)},
          {"vgg_like", vgg_like(kClasses)},
          {"small_resnet", small_resnet(kClasses)}};
}

/// The plan of a plan file or scenario.
Expected<Plan> find_plan(const std::string& target) {
  if (is_plan_file(target)) return plan_from_file(target);
  std::vector<std::string> names;
  for (const auto& scenario : find_scenarios(search_places()).scenarios) {
    if (scenario.name == target) return plan_from_json(scenario.plan.dump(), scenario.name);
    names.push_back(scenario.name);
  }
  for (const auto& named : models_by_name()) names.emplace_back(named.name);
  return Error{concat("unknown scenario, plan file (.toml, .json) or model \"", target, '"',
                      suggest(target, names))};
}

/// Adds a remedy if the plan has custom layers or data, which only its program knows.
Error explain_unknown_layers(const Error& error, const Plan& plan) {
  if (!needs_program(plan)) return error;
  return Error{concat(error.text,
                      "; this command knows only built-in layers and data, so give a plan with "
                      "these and the same shapes")};
}

}  // namespace

Expected<PartitionModel> partition_model(const std::string& target) {
  for (const auto& named : models_by_name()) {
    if (named.name != target) continue;
    Plan plan;
    plan.name = target;
    plan.model = named.layers;
    auto model = Model::build(plan.model, plan.loss, kImage, kClasses, 0);
    if (!model) return model.error();
    return PartitionModel{std::move(plan), *model, nullptr};
  }
  auto plan = find_plan(target);
  if (!plan) return plan.error();
  if (const auto valid = validate(*plan); !valid) return valid.error();
  auto data = load_data(plan->data, plan->seed);
  if (!data) return explain_unknown_layers(data.error(), *plan);
  const Dataset& train = *data->train;
  auto model = Model::build(plan->model, plan->loss, train.sample_shape(), train.classes(),
                            train.target_count(), train.label_count());
  if (!model) return explain_unknown_layers(model.error(), *plan);
  return PartitionModel{std::move(*plan), *model, data->train};
}

}  // namespace leeway::cli
