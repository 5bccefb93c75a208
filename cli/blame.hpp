#pragma once
// The subcommand `leeway blame`, with its flags.
#include <string>

namespace CLI {
class App;
}

namespace leeway::cli {

struct BlameOptions {
  std::string folder;      // of a run; empty: import
  std::string import;      // a CSV file
  bool remedies = false;   // simulate what would help
  bool gradients = false;  // with losses
  bool json = false;
};

CLI::App* add_blame(CLI::App& app, BlameOptions& options);

/// Prints the waiting times of a run by cause, or the slowdown of an imported trace. Returns the
/// exit code.
int blame(const BlameOptions& options);

}  // namespace leeway::cli
