#pragma once
// Loads the history of a run that has ended, from its folder.
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "dashboard/run_history.hpp"

namespace leeway::dashboard {

/// `policy`: the plan's consistency policy in words. Reads result.json, metrics.jsonl and, if the
/// run was traced, its events. Errors: a file is missing or malformed.
Expected<std::unique_ptr<RunHistory>> load_history(const std::string& folder, const Plan& plan,
                                                   const std::string& policy);

}  // namespace leeway::dashboard
