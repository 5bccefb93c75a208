#pragma once
// The subcommand `leeway trace`, with its flags.
#include <string>

namespace CLI {
class App;
}

namespace leeway::cli {

struct TraceOptions {
  std::string folder;  // of a run
  std::string out;     // a file; empty: in the folder
};

CLI::App* add_trace(CLI::App& app, TraceOptions& options);

/// Writes the trace. Returns the exit code.
int trace(const TraceOptions& options);

}  // namespace leeway::cli
