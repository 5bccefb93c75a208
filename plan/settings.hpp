#pragma once
// Settings: the annotated fields of the plan's schemas, for --help and docs/settings.md.
#include <string>
#include <string_view>
#include <vector>

namespace leeway::plan {

struct Setting {
  std::string key;            // "stop.epochs"; "faults[].actor" for the items of a list
  std::string default_value;  // as in a plan file; empty for tables and lists
  std::string flag;           // "--epochs", or empty
  std::string help;           // "passes over the training data, may be a fraction; 0: no limit"
  std::string values;         // values of the flag; empty: a plain value
  std::string range;          // "1 to 65536"; empty: any value
};

/// For --help: "Optimizer: sgd, momentum, ...".
std::string help_of_flag(const Setting& setting);

/// All settings, in the order of the schema.
const std::vector<Setting>& settings();
/// Null if the key is unknown.
const Setting* find_setting(std::string_view key);
/// Requires a known key.
const Setting& setting(std::string_view key);

/// The names of a union's arms or an enum's values, in the order of the schema: sgd, momentum, ...
/// for "optimizer".
std::vector<std::string> choices(std::string_view key);

/// The text of docs/settings.md.
std::string settings_page();

}  // namespace leeway::plan
