#pragma once
// The command `leeway launch`, also for programs with updaters.
#include <string>
#include <vector>

namespace leeway::kv {

/// Starts the workers that `words` describe: [--restart] [FLAGS] PROGRAM [ARGS...]. `command`: how
/// the user calls it, for --help. Returns the exit code (see launch()).
int run_launch_command(const std::string& command, const std::vector<std::string>& words);

}  // namespace leeway::kv
