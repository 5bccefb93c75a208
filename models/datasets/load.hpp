#pragma once
// From a plan's data source to data sets.
#include <cstdint>
#include <functional>
#include <string>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Loads or makes the data. The same source and seed give the same samples in the same order on
/// every node. The result is not empty, and train and test agree in sample shape, classes and
/// target count. Errors say what to do.
Expected<TrainTest> load_data(const plan::DataSource& source, std::uint64_t seed);

/// Makes a data set that a program brings along; called once per load_data, with the run's seed.
using DataFactory = std::function<Expected<TrainTest>(std::uint64_t seed)>;

/// Makes plan::CustomData{name} known; a name registered again gets the new factory. Thread-safe.
void register_data(const std::string& name, DataFactory factory);

}  // namespace leeway
