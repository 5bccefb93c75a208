#pragma once
// The types of Store::create().
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway::kv {

/// The policy of "dist_sync" (bsp), "dist_async" (asp), "dist_ssp(3)", "dist_backup(1)",
/// "dist_quorum(3,20ms)", "dist_adaptive(1,8)" or "dist_auto". The error lists the types.
Expected<plan::Consistency> policy_of(const std::string& type);

}  // namespace leeway::kv
