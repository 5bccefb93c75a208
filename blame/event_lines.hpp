#pragma once
// Reads events.jsonl of a run folder.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/expected.hpp"

namespace leeway::blame {

inline constexpr double kSecondsPerNs = 1e-9;

/// Calls `handle` for each event, in the order of their times: the nodes of a cluster write them in
/// batches. Skips the events before a resume in the same folder, and an incomplete last line, as a
/// killed program leaves. The error names the line.
Status read_events(const std::string& path,
                   const std::function<void(const nlohmann::json&)>& handle);

}  // namespace leeway::blame
