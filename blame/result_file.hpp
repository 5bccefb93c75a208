#pragma once
// Reads result.json of a run folder.
#include <algorithm>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/expected.hpp"

namespace leeway::blame {

/// Seconds of all workers together.
struct WorkerSeconds {
  double compute = 0, wait = 0;
  /// Of all time.
  double waiting_share() const { return wait / std::max(compute + wait, 1e-12); }
};
/// Throws nlohmann::json::exception if a field is missing.
WorkerSeconds worker_seconds(const nlohmann::json& result);

/// Calls `handle` with the result. Errors: the file is missing or malformed, or `handle` does not
/// find a field in it.
Status read_result(const std::string& folder,
                   const std::function<void(const nlohmann::json&)>& handle);

}  // namespace leeway::blame
