#pragma once
// launch(): starts the workers of a store as processes of this host, and runs the job that they
// declare. This process has the scheduler, the monitor and, without nodes for them, the shards.
#include <string>
#include <vector>

namespace leeway::kv {

struct LaunchOptions {
  std::string command = "leeway launch";
  std::string program;                 // path, or a name to find in PATH
  std::vector<std::string> arguments;  // of the program
  std::vector<std::string> flags;      // of the run, as of a scenario program
  bool restart = false;                // workers that fail
};

/// Returns the exit code: that of the run, 1 if a worker ends before it has initialised its keys, 2
/// for flags that are refused. Ctrl-C stops the run.
int launch(const LaunchOptions& options);

/// The number of words that are flags of launched runs and their values.
std::size_t leading_launch_flags(const std::vector<std::string>& words);

}  // namespace leeway::kv
