#pragma once
// The subcommands of a cluster: node, join, up and status. `leeway` has all of them, and every
// scenario program has node and join.
#include <string>
#include <vector>

namespace leeway {

/// The text below the --help of scenario programs.
std::string node_programs_help(const std::string& program);

/// Whether `word` is a subcommand of scenario programs: node or join.
bool is_node_program(const std::string& word);
/// Runs the subcommand argv[1]: node, join, up or status. Returns the exit code: 0 done, 1 failed,
/// 2 refused.
int run_node_program(int argc, char** argv);

/// Starts `count` agents on this host with these arguments, prints how to use them, and stops them
/// on Ctrl-C. `tls`: the TLS folder among the arguments; empty: none.
int run_up(unsigned count, const std::vector<std::string>& arguments, const std::string& tls);

}  // namespace leeway
