// `leeway launch`.
#include "kv/launch.hpp"

#include <iostream>

#include "cli/commands.hpp"

namespace leeway::cli {
namespace {

constexpr const char* kHelp =
    "Usage: leeway launch [--restart] [FLAGS] PROGRAM [ARGS...]\n\n"
    "Starts PROGRAM as each worker of a store (KvStore::create), and serves it: with scheduler,\n"
    "shards and a run folder, like the program of a scenario.\n\n"
    "  leeway launch --workers 4 --shards 2 ./my-loop\n"
    "  leeway launch --workers 4 --restart python3 my-loop.py\n"
    "  leeway launch --workers 4 --nodes a:4242,b:4242 ./my-loop    shards on these nodes\n\n"
    "Options:\n"
    "  --restart    Start a worker again that fails. Without it, such a worker is evicted, and "
    "the\n"
    "               others continue\n\n"
    "FLAGS are those of any run:\n\n";

}  // namespace

int launch(const std::vector<std::string>& words) {
  kv::LaunchOptions options;
  const std::size_t flags = kv::leading_launch_flags(words);
  bool helps = false;
  for (std::size_t i = 0; i < flags; ++i) {
    helps = helps || words[i] == "--help" || words[i] == "-h";
    if (words[i] == "--restart")
      options.restart = true;
    else
      options.flags.push_back(words[i]);
  }
  if (helps) {
    std::cout << kHelp;
    return kv::launch(options);  // prints the flags
  }
  if (flags == words.size()) {
    std::cerr << "leeway: nothing to launch; give a program, as in `leeway launch --workers 4 "
                 "./my-loop`; `leeway launch --help` lists the flags\n";
    return kBadUsage;
  }
  options.program = words[flags];
  options.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(flags) + 1, words.end());
  return kv::launch(options);
}

}  // namespace leeway::cli
