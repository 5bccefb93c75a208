#pragma once
// The metadata of a file of trained weights, which can then be used without its run folder.
#include "models/datasets/preprocessing.hpp"
#include "models/safetensors.hpp"
#include "plan/plan.hpp"

namespace leeway {

inline constexpr const char* kPlanKey = "leeway.plan";
inline constexpr const char* kPreprocessingKey = "leeway.preprocessing";

/// Name, seed, data, model and loss of the plan as JSON, and the preprocessing unless it is null.
/// Equal for runs that train the same model on the same data.
Metadata weights_metadata(const Plan& plan, const Preprocessing* preprocessing);

}  // namespace leeway
