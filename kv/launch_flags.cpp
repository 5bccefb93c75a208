#include "kv/launch_flags.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include "core/text.hpp"
#include "kv/resumed_launch.hpp"
#include "kv/store_plan.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/scenario.hpp"

namespace leeway::kv {
namespace {

/// Flags that need a model, data or a simulation.
std::vector<std::string> refused_flags() {
  return {"--augment",        "--calibrate",       "--check-determinism",
          "--chunks",         "--clusters",        "--crash-atlas",
          "--data",           "--device",          "--describe-json",
          "--evaluate-every", "--freeze",          "--from",
          "--fuzz",           "--gradients",       "--init",
          "--init-map",       "--init-partial",    "--label",
          "--local-steps",    "--missing",         "--micro-batches",
          "--no-header",      "--outer-lr",        "--plan",
          "--place",          "--outer-optimizer", "--pipelines",
          "--precision",      "--predict-weights", "--prefetch",
          "--profile",        "--recompute",       "--schedule",
          "--second",         "--separator",       "--simulate",
          "--split",          "--stages",          "--text-columns",
          "--threads",        "--until-accuracy",  "--world"};
}

/// Whether one of the flags has this name.
bool has_flag(const std::vector<std::string>& flags, const std::string& name) {
  return std::ranges::any_of(
      flags, [&](const std::string& flag) { return flag == name || flag.starts_with(name + '='); });
}

}  // namespace

Plan any_plan(const std::string& name) {
  Plan plan = store_plan({.keys = {{"key", {}}}, .values = {}, .optimizer = {}},
                         {.workers = 4, .shards = 2});
  plan.name = name;
  return plan;
}

CommandLine read_flags(Plan plan, const std::vector<std::string>& flags) {
  // The processes of the workers will be nodes, so flags of connections are allowed.
  const std::string some_node = "127.0.0.1:1";
  const char* const nodes = std::getenv("LEEWAY_NODES");
  const bool has_nodes =
      (nodes && *nodes) || has_flag(flags, "--nodes") || has_flag(flags, "--hosts");
  Scenario scenario(std::move(plan),
                    "Starts the workers of a store as processes, and serves them.");
  scenario.decides(refused_flags());
  scenario.shows_default(
      "as PROGRAM has it",
      {"--optimizer", "--lr", "--weight-decay", "--clip-norm", "--clip-value", "--staleness",
       "--batch", "--epochs", "--iterations", "--seconds", "--seed"});
  std::vector<std::string> words = {"leeway launch"};
  words.insert(words.end(), flags.begin(), flags.end());
  if (!has_nodes) words.insert(words.end(), {"--nodes", some_node});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  CommandLine line = parse(scenario, static_cast<int>(argv.size()), argv.data());
  if (has_nodes || line.exit_code) return line;
  ClusterOptions cluster = *line.options.cluster;
  cluster.nodes.clear();
  line.options.cluster = std::make_shared<const ClusterOptions>(std::move(cluster));
  return line;
}

Expected<std::optional<ResumePoint>> find_resumed(std::vector<std::string>& flags,
                                                  const std::string& name) {
  const auto flag = std::ranges::find_if(
      flags, [](const std::string& word) { return has_flag({word}, "--resume"); });
  const bool is_joined = flag != flags.end() && *flag != "--resume";
  if (flag == flags.end() || (!is_joined && std::next(flag) == flags.end()))
    return std::optional<ResumePoint>();
  const std::string where = is_joined ? flag->substr(flag->find('=') + 1) : *std::next(flag);
  auto from = find_store_run(where, name);
  if (!from) return from.error();
  (is_joined ? *flag : *std::next(flag)) = (is_joined ? "--resume=" : "") + from->path();
  return std::optional(std::move(*from));
}

}  // namespace leeway::kv
