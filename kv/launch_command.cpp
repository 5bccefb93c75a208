#include "kv/launch_command.hpp"

#include <iostream>

#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "kv/launch.hpp"
#include "kv/serve.hpp"
#include "kv/table.hpp"
#include "runtime/cluster/node_programs.hpp"

namespace leeway::kv {
namespace {

std::string help_of(const std::string& command) {
  return concat(
      "Usage: ", command, " [--restart] [FLAGS] PROGRAM [ARGS...]\n\n",
      "Starts PROGRAM as each worker of a store (KvStore::create), and serves it: with scheduler,\n"
      "shards, a run folder and checkpoints, like the program of a scenario.\n\n  ",
      command, " --workers 4 --shards 2 ./my-loop\n  ", command,
      " --workers 4 --restart python3 my-loop.py\n  ", command,
      " --workers 4 --nodes a:4242,b:4242 ./my-loop    shards on these nodes\n  ", command,
      " --resume latest ./my-loop    from the last checkpoint, with the same keys\n\n"
      "Options:\n"
      "  --restart    Start a worker again that fails. Without it, such a worker is evicted, and "
      "the\n"
      "               others continue\n\n"
      "FLAGS are those of any run:\n\n");
}

}  // namespace

int run_launch_command(const std::string& command, const std::vector<std::string>& words) {
  LaunchOptions options{.command = command};
  const std::size_t flags = leading_launch_flags(words);
  bool helps = false;
  for (std::size_t i = 0; i < flags; ++i) {
    helps = helps || words[i] == "--help" || words[i] == "-h";
    if (words[i] == "--restart")
      options.restart = true;
    else
      options.flags.push_back(words[i]);
  }
  if (helps) {
    std::cout << help_of(command);
    return launch(options);  // prints the flags
  }
  if (flags == words.size()) {
    std::cerr << "leeway: nothing to launch; give a program, as in `" << command
              << " --workers 4 ./my-loop`; `" << command << " --help` lists the flags\n";
    return kExitRefused;
  }
  options.program = words[flags];
  options.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(flags) + 1, words.end());
  return launch(options);
}

int serve(int argc, char** argv) {
  try {
    register_tables();
    if (argc > 1 && is_node_program(argv[1])) return run_node_program(argc, argv);
    return run_launch_command(argv[0], {argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "leeway: " << error.what() << std::endl;
    return kExitFailed;
  }
}

}  // namespace leeway::kv
