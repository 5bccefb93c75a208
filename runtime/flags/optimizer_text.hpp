#pragma once
// The values of --optimizer and --outer-optimizer.
#include <string>
#include <string_view>

#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

/// A name such as "momentum", with its default learning rate and weight decay, or with the numbers
/// that distinguish it: "momentum(0.99)", "adamw(0.9,0.95)"; "updater(NAME)". Errors begin with
/// `flag` and end with allowed values.
Expected<plan::Optimizer> parse_optimizer(const std::string& text,
                                          std::string_view flag = "--optimizer");
/// The name, with numbers if they are not the usual ones.
std::string text_of(const plan::Optimizer& optimizer);

/// "average", "momentum(0.9)", "nesterov(0.9)", "delayed_nesterov(0.9,1)" or "adam(0.9,0.999)",
/// with its usual learning rate. Errors end with allowed values.
Expected<plan::OuterOptimizer> parse_outer_optimizer(const std::string& text);
std::string text_of(const plan::OuterOptimizer& outer);

}  // namespace leeway
