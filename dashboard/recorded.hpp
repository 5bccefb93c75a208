#pragma once
// Loads the history of a run that has ended, from its folder.
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "dashboard/run_history.hpp"

namespace leeway::dashboard {

/// `policy`: the plan's consistency policy in words. Reads metrics.jsonl, the events if the run was
/// traced, and result.json. Errors: a file is malformed; both events and result are missing.
Expected<std::unique_ptr<RunHistory>> load_history(const std::string& folder, const Plan& plan,
                                                   const std::string& policy);

}  // namespace leeway::dashboard
