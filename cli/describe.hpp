#pragma once
// The output of `leeway list` and `leeway describe`.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/manifest.hpp"

namespace leeway::cli {

/// One aligned line per scenario: name and summary.
std::string list_text(const std::vector<Manifest>& scenarios);

/// Converts a plan's JSON to a TOML plan file with one `key = value` per line and dotted keys.
std::string plan_file_text(const nlohmann::ordered_json& plan);

/// Name, summary, description and default plan.
std::string describe_text(const Manifest& manifest);

}  // namespace leeway::cli
