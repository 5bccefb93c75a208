#pragma once
// Settings: what plan.capnp says about each field of a plan, for --help and docs/settings.md.
#include <string>
#include <string_view>
#include <vector>

namespace leeway::plan {

struct Setting {
  std::string key;            // "stop.epochs"; "faults[].actor" of each item of a list
  std::string default_value;  // as in a plan file; empty for tables and lists
  std::string flag;           // "--epochs"; empty: none
  std::string help;           // "passes over the training data, may be a fraction; 0: no limit"
  std::string values;         // what the flag takes; empty: the value as it is
  std::string range;          // "1 to 65536"; empty: any value
};

/// For --help: "Optimizer: sgd, momentum, ...".
std::string help_of_flag(const Setting& setting);

/// All settings, in the order of the schema.
const std::vector<Setting>& settings();
/// Null when there is none of this key.
const Setting* find_setting(std::string_view key);
/// Requires that there is one.
const Setting& setting(std::string_view key);

/// The names of a choice (a union or an enum), in the order of the schema: sgd, momentum, ... of
/// "optimizer".
std::vector<std::string> choices(std::string_view key);

/// The text of docs/settings.md.
std::string settings_page();

}  // namespace leeway::plan
