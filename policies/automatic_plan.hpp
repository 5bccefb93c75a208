#pragma once
// The settings that --staleness auto implies (policies/consistency/automatic.hpp).
#include <optional>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The plan with the balance and the delay policy of `auto`; other plans as they are.
Plan with_automatic_settings(Plan plan);

/// Settings that the user has given besides the policy.
struct GivenSettings {
  std::optional<plan::Balance> balance;
  std::optional<plan::DelayPolicy> delay_policy;
};

/// Refuses given settings that `auto` replaces in the plan.
Status check_implied(const GivenSettings& given, const Plan& plan);

}  // namespace leeway
