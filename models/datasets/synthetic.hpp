#pragma once
// Data sets drawn from a known distribution, for experiments whose best result is known.
#include <cstdint>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Draws independent training and test samples from one distribution, which depends on the seed.
///
/// Line: one feature x, uniform in [-1, 1); target slope * x + intercept + noise * N(0, 1).
/// Clusters: a uniform class; each feature is that of the class's center plus N(0, 1). The centers
/// are uniform on the sphere of radius `spread`. Errors name the plan's key: numbers that are not
/// finite, counts of zero, and sizes beyond memory.
Expected<TrainTest> make_synthetic(const plan::Synthetic& source, std::uint64_t seed);

}  // namespace leeway
