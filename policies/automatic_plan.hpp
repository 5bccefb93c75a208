#pragma once
// The settings that --staleness auto implies (policies/consistency/automatic.hpp).
#include "plan/plan.hpp"

namespace leeway {

/// The plan with the balance and the delay policy of `auto`; other plans as they are.
Plan with_automatic_settings(Plan plan);

}  // namespace leeway
