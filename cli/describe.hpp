#pragma once
// What `leeway list` and `leeway describe` print.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/manifest.hpp"

namespace leeway::cli {

/// One aligned line a scenario: name and summary.
std::string list_text(const std::vector<Manifest>& scenarios);

/// A plan's JSON as a plan file in TOML, one `key = value` a line, tables as dotted keys.
std::string plan_file_text(const nlohmann::ordered_json& plan);

/// Name, summary, description and default plan.
std::string describe_text(const Manifest& manifest);

}  // namespace leeway::cli
