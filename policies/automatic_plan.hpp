#pragma once
// The settings that --staleness auto implies (policies/consistency/automatic.hpp), and those of
// --precision mixed.
#include <optional>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The plan with the balance and the delay policy of `auto`, and the encodings of mixed precision:
/// bf16 for pulls and between stages, where the plan has no other codec.
Plan with_automatic_settings(Plan plan);

/// Settings that the user has given besides the policy.
struct GivenSettings {
  std::optional<plan::Balance> balance;
  std::optional<plan::DelayPolicy> delay_policy;
};

/// Refuses given settings that `auto` replaces in the plan.
Status check_implied(const GivenSettings& given, const Plan& plan);

}  // namespace leeway
