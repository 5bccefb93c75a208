#pragma once
// From a plan's data source to data sets.
#include <cstdint>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Loads or makes the data. The same source and seed give the same samples in the same order on
/// every node. The result is not empty, and train and test agree in sample shape, classes and
/// target count. Errors say what to do.
Expected<TrainTest> load_data(const plan::DataSource& source, std::uint64_t seed);

}  // namespace leeway
