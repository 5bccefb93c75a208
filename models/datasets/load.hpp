#pragma once
// load_data: makes the data sets of a plan's data source.
#include <cstdint>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Loads or generates the data. The same source and seed give the same samples in the same order
/// on every node. Neither set is empty, and both agree in sample shape, classes and target count.
Expected<TrainTest> load_data(const plan::DataSource& source, std::uint64_t seed);

}  // namespace leeway
