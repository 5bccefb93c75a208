#pragma once
// The programs of a cluster that train nothing themselves: node agents, and those who look after
// them. `leeway` has them, and every scenario program the first two.
#include <string>
#include <vector>

namespace leeway {

/// Below the help of scenario programs.
std::string node_programs_help(const std::string& program);

/// Whether `word` asks for one that a scenario program has: node or join.
bool is_node_program(const std::string& word);
/// argv[1] is the word: node, join, up or status. Returns the exit code: 0 done, 1 failed, 2
/// refused.
int run_node_program(int argc, char** argv);

/// Starts `count` agents of this host, tells how to use them, and ends them on Ctrl-C. `arguments`
/// are those of each.
int run_up(unsigned count, const std::vector<std::string>& arguments);

}  // namespace leeway
