#pragma once
// Data sets drawn from a known distribution, to try things out and to know what can be learned.
#include <cstdint>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Draws training and test samples, independent of each other, from one distribution that depends
/// on the seed.
///
/// Line: one feature x, uniform in [-1, 1); target slope * x + intercept + noise * N(0, 1).
/// Clusters: class uniform; features its center + N(0, 1) each; the centers uniform on the sphere
/// of radius `spread`. Errors: numbers that are not finite, and counts of zero or beyond memory, by
/// the plan's keys.
Expected<TrainTest> make_synthetic(const plan::Synthetic& source, std::uint64_t seed);

}  // namespace leeway
