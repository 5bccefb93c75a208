#pragma once
// Flags of the training data.
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// As given, before they are applied to the plan.
struct DataFlags {
  std::optional<std::string> path, label, separator, missing, text_columns;
  bool no_header = false;
};

/// The path that --data replaces; empty for data without a path.
std::string data_path(const plan::DataSource& data);

/// Applies the flags. --data changes the kind of data if the path is a folder of images, or a file;
/// the other flags set up files of their kind. Errors name the flag.
Status apply_data(const DataFlags& flags, plan::DataSource& data);

}  // namespace leeway
