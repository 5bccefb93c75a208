#pragma once
// Values of flags that are more than a number.
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "policies/straggler/text.hpp"
#include "runtime/flags/fault_text.hpp"

namespace leeway {

/// "3", "bsp", "asp" or "adaptive(1,8)". Errors end in what would be right.
Expected<plan::Consistency> parse_staleness(const std::string& text);
/// "equal" or "speed".
Expected<plan::Balance> parse_balance(const std::string& text);
/// The name of an optimizer, with its usual learning rate and parameters.
Expected<plan::Optimizer> parse_optimizer(const std::string& text);
/// What a plan has, as its flag takes it: "3" or "bsp", "speed", "adam", "flip,shift=2".
std::string text_of(const plan::Consistency& policy);
std::string text_of(plan::Balance balance);
std::string text_of(const plan::Optimizer& optimizer);
std::string text_of(const plan::Augment& augment);
/// "flip", "shift=2", both with a comma between, or "none".
Expected<plan::Augment> parse_augment(const std::string& text);
/// What was given with --slow, each time "3:4x", several with commas between, or "none"; see
/// policies/straggler/text.hpp. It replaces the stragglers of the workers that it names, all of
/// them for "none" and "all:"; what is given for one worker adds up.
Status apply_slow(const std::vector<std::string>& given, std::vector<plan::Straggler>& stragglers);

}  // namespace leeway
