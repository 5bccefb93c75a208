#pragma once
// What `leeway partition` cuts: the model of a plan file, of a scenario, or a whole model by name.
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "models/model.hpp"
#include "plan/plan.hpp"

namespace leeway::cli {

struct PartitionModel {
  Plan plan;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Dataset> data;  // null: of a model by name, which is for images of 1x28x28
};

/// The error says what would be right.
Expected<PartitionModel> partition_model(const std::string& target);

}  // namespace leeway::cli
