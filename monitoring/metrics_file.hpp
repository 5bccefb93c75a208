#pragma once
// Reads metrics.jsonl of a run folder.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace leeway {

struct MetricsFile {
  /// All lines in order, except those of a resume. A run that is resumed at a checkpoint repeats
  /// the training beyond it, whose lines are left out. A line without a time, as of an eviction,
  /// has the `seconds` and `samples_trained` of the line before.
  std::vector<nlohmann::json> lines;
  std::size_t before_resume = 0;  // lines before the last resume
};

/// Empty without the file. Skips lines that are not complete, as a killed program leaves.
MetricsFile read_metrics(const std::string& folder);

/// Removes the lines of training beyond this number of samples.
void drop_beyond(double samples, std::vector<nlohmann::json>& lines);

/// 0 without the key, and for a value that is not finite, which JSON lacks.
double number_in(const nlohmann::json& line, const char* key);

}  // namespace leeway
