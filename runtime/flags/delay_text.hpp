#pragma once
// The text of `--delay-policy`.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Such as plain, "lag_scaled(1)" or "delay_compensated(2,0.95)"; without numbers, the defaults
/// hold. The error lists the policies.
Expected<plan::DelayPolicy> parse_delay_policy(const std::string& text);
std::string text_of(const plan::DelayPolicy& policy);

}  // namespace leeway
