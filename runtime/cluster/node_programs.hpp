#pragma once
// The subcommands of a cluster: node, join, up, status and doctor. `leeway` has all of them, and
// every scenario program has node and join.
#include <string>
#include <vector>

namespace leeway {

/// The text below the --help of scenario programs.
std::string node_programs_help(const std::string& program);

/// Whether `word` is a subcommand of scenario programs: node or join.
bool is_node_program(const std::string& word);
/// Runs the subcommand argv[1]. Returns the exit code: 0 done, 1 failed, 2 refused, 130
/// interrupted.
int run_node_program(int argc, char** argv);

/// Starts `count` agents on this host with these arguments, prints how to use them, and stops them
/// on Ctrl-C. `tls`: the TLS folder among the arguments; empty: none. `restart`: an agent that ends
/// starts again at its address.
int run_up(unsigned count, const std::vector<std::string>& arguments, const std::string& tls,
           bool restart);

}  // namespace leeway
