#pragma once
// The model that `leeway partition` splits: from a plan file, from a scenario, or by name.
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
  std::shared_ptr<const Dataset> data;  // null for a model by name, which takes images of 1x28x28
};

Expected<PartitionModel> partition_model(const std::string& target);

}  // namespace leeway::cli
