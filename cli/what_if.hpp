#pragma once
// The subcommand `leeway what-if`, with its flags.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leeway::cli {

struct WhatIfCommand {
  std::string folder, import;                   // a run, or the file of a trace
  std::string staleness, balance, schedule;     // unparsed; empty: as in the run
  std::vector<std::string> without_stragglers;  // "worker3"
  std::optional<std::uint32_t> workers, shards;
  std::optional<double> link;
  bool prefetch = false;
  bool gradients = false;
  bool json = false;
};

CLI::App* add_what_if(CLI::App& app, WhatIfCommand& command);

/// Prints the times of a run as measured, as simulated, and with the changed settings. Returns the
/// exit code.
int what_if(const WhatIfCommand& command);

}  // namespace leeway::cli
