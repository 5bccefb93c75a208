#pragma once
// The value of --outer-optimizer.
#include <string>

#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

/// "average", "momentum", "nesterov(0.9)", "delayed_nesterov(0.9,1)" or "adam", with its usual
/// learning rate. Errors end with allowed values.
Expected<plan::OuterOptimizer> parse_outer_optimizer(const std::string& text);
std::string text_of(const plan::OuterOptimizer& outer);

}  // namespace leeway
