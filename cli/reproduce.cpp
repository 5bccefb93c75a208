#include "cli/reproduce.hpp"

#include <algorithm>
#include <vector>

#include "cli/commands.hpp"
#include "core/text.hpp"

namespace leeway::cli {
namespace {

struct Reproduction {
  std::string name;
  std::string program;
  std::string help;
};
const Reproduction kReproductions[] = {
    {"async-local-sgd", "async-local-sgd",
     "Local SGD with four unequal workers, synchronous and asynchronous"},
    {"backup-workers", "backup-workers",
     "Time to a loss against the number of spare workers, with 100 workers"},
    {"goodput", "goodput", "The share of time for which decoupled learners train while chips fail"},
    {"one-step-delay", "one-step-delay",
     "The cost of gradients that are one step old, with AdamW, NAdam and Muon"},
    {"ringmaster", "ringmaster", "A limit of delays among 2,000 unequal workers"},
    {"what-if", "what-if-traces",
     "The cause of stragglers in traces (CSV files, given first), and what would help at which "
     "loss"},
};

}  // namespace

CLI::App* add_reproduce(CLI::App& app) {
  auto* reproduce =
      app.add_subcommand("reproduce", "Published results beside simulated runs of the same");
  for (const auto& [name, program, help] : kReproductions)
    reproduce->add_subcommand(name, concat(help, "; arguments as of the program ", program))
        ->prefix_command()
        ->set_help_flag();
  reproduce->require_subcommand(1);
  return reproduce;
}

Status check_reproduction(std::string_view name) {
  std::vector<std::string> names;
  for (const Reproduction& one : kReproductions) names.push_back(one.name);
  if (std::ranges::find(names, name) != names.end()) return {};
  return Error{concat("reproduce: unknown published result \"", name, '"', suggest(name, names))};
}

int reproduce(const CLI::App& reproduce) {
  const CLI::App* parsed = reproduce.get_subcommands().front();
  const auto found = std::ranges::find(kReproductions, parsed->get_name(), &Reproduction::name);
  return run(found->program, parsed->remaining());
}

}  // namespace leeway::cli
