// The command line of scenario programs: each setting of the plan is a flag.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "monitoring/run_folder.hpp"
#include "plan/old_names.hpp"
#include "runtime/checkpoints.hpp"
#include "runtime/cluster/node_programs.hpp"
#include "runtime/flags/command_line.hpp"
#include "runtime/flags/flags.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/plan_file.hpp"
#include "runtime/flags/usage.hpp"
#include "runtime/outcome.hpp"
#include "runtime/scenario.hpp"
#include "runtime/tools/atlas.hpp"
#include "runtime/tools/calibrate.hpp"
#include "runtime/tools/fuzz.hpp"
#include "sim/world.hpp"

namespace leeway {
namespace {

constexpr unsigned kMaxFuzzThreads = 1024;

void print_manifest(const Scenario& scenario) {
  nlohmann::ordered_json json;
  json["name"] = scenario.plan().name;
  json["summary"] = scenario.summary();
  json["description"] = scenario.description();
  json["plan"] = nlohmann::ordered_json::parse(to_json(scenario.plan()));
  std::cout << json.dump(2) << '\n';
}

/// The arguments with flags of an earlier version renamed; prints a note for each.
std::vector<std::string> rename_old_flags(const std::string& program, int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (auto& argument : arguments)
    for (const auto& [old_name, name] : plan::kOldFlags)
      if (const auto flag = argument.substr(0, argument.find('=')); flag == old_name) {
        std::cerr << concat(program, ": ", old_name, " is now called ", name, '\n');
        argument.replace(0, flag.size(), name);
      }
  return arguments;
}

}  // namespace

std::size_t leading_flags(const Scenario& scenario, const std::vector<std::string>& words) {
  Flags flags;
  CLI::App app;
  add_flags(app, flags, scenario.plan());
  std::size_t word = 0;
  while (word < words.size() && words[word].starts_with('-')) {
    const auto* const flag = app.get_option_no_throw(words[word]);  // null with =VALUE
    word += flag && flag->get_items_expected_max() > 0 ? 2 : 1;
  }
  return std::min(word, words.size());
}

CommandLine parse(const Scenario& scenario, int argc, char** argv) {
  CommandLine line{scenario.plan(), {}, std::nullopt};
  Flags flags;
  CLI::App app(
      scenario.summary() + (scenario.description().empty() ? "" : "\n\n" + scenario.description()),
      scenario.plan().name);
  app.formatter(help_formatter());
  add_flags(app, flags, scenario.plan());
  // Flags of settings that the program decides are hidden, and refused below.
  for (const auto& flag : scenario.decided()) app.get_option(flag)->group("");
  app.footer(node_programs_help(scenario.plan().name));
  const auto refuse = [&](const std::string& text) {
    std::cerr << scenario.plan().name << ": " << text << '\n';
    line.exit_code = kExitRefused;
    return line;
  };
  const auto arguments = rename_old_flags(scenario.plan().name, argc, argv);
  std::vector<const char*> words;
  for (const auto& argument : arguments) words.push_back(argument.c_str());
  try {
    parse_words(app, argc, words.data());
  } catch (const CLI::ParseError& error) {
    line.exit_code = answer(app, error, scenario.plan().name);
    return line;
  }
  for (const auto& flag : scenario.decided())
    if (app.get_option(flag)->count() > 0)
      return refuse(concat(flag, ": this program sets it itself or ignores it; leave it out"));
  if (flags.describe_json) {
    print_manifest(scenario);
    line.exit_code = kExitOk;
    return line;
  }
  if (flags.from && flags.resume)
    return refuse("--from and --resume contradict each other; give one");
  if (flags.resume) {
    if (flags.seed)
      return refuse("--seed: a resumed run keeps its seed; leave out --seed or --resume");
    if (flags.init)
      return refuse("--init: a resumed run has its weights; leave out --init or --resume");
    auto from = find_checkpoint(*flags.resume, scenario.plan().name);
    if (!from) return refuse(concat("--resume: ", from.error().text));
    line.options.resume = from->path();
    line.options.folder = from->run_folder;
    line.plan = std::move(from->plan);
    // The checkpoints of a new folder go there.
    if (!flags.out.empty()) line.plan.checkpoints.directory.clear();
  }
  if (flags.from) {
    auto plan = plan_from_file(*flags.from);
    if (!plan) return refuse(concat("--from: ", plan.error().text));
    line.plan = std::move(*plan);
  }
  if (const auto applied = apply(flags, line.plan); !applied) return refuse(applied.error().text);
  if (flags.fuzz && flags.crash_atlas)
    return refuse("--fuzz and --crash-atlas are two searches; give one");
  if (flags.second && !flags.crash_atlas)
    return refuse("--second applies only to --crash-atlas; give both, or leave it out");
  const bool searches = flags.fuzz || flags.crash_atlas;
  if (!searches && flags.threads)
    return refuse(
        "--threads applies only to --fuzz and --crash-atlas; add one of them, or leave it out");
  if (!flags.fuzz && flags.clusters)
    return refuse("--clusters applies only to --fuzz; add --fuzz 1..2000, or leave it out");
  if (flags.fuzz &&
      (flags.serve || flags.metrics || flags.tensorboard || flags.trace || flags.trace_json ||
       flags.trace_messages || flags.profile || flags.check_determinism))
    return refuse(
        "--fuzz writes only failing plans, and always checks determinism; leave out --serve, "
        "--metrics, --tensorboard, "
        "--trace, --trace-json, --trace-messages, --profile and --check-determinism");
  if (searches && flags.threads && *flags.threads > kMaxFuzzThreads)
    return refuse(
        concat("--threads: ", *flags.threads, " are too many; give at most ", kMaxFuzzThreads));
  if (flags.fuzz) {
    FuzzOptions options{.threads = flags.threads.value_or(0),
                        .clusters = flags.clusters,
                        .folder = flags.out.empty() ? "." : flags.out};
    options.command = needs_program(line.plan) ? concat(argv[0], " --from") : "leeway run";
    if (const auto read = parse_seeds(*flags.fuzz, options); !read)
      return refuse(concat("--fuzz: ", read.error().text));
    line.exit_code = fuzz(line.plan, options);
    return line;
  }
  if (flags.crash_atlas) {
    line.exit_code = crash_atlas(line.plan, {.second = flags.second.value_or(2000),
                                             .seed = line.plan.seed,
                                             .threads = flags.threads.value_or(0)});
    return line;
  }
  if (flags.calibrate) {
    line.exit_code = calibrate(line.plan, *flags.calibrate);
    return line;
  }
  if (flags.print_plan) {
    std::cout << to_json(line.plan);
    line.exit_code = kExitOk;
    return line;
  }
  if (flags.no_out)
    for (const auto& [name, given] : {std::pair{"--tensorboard", flags.tensorboard},
                                      {"--trace", flags.trace},
                                      {"--trace-json", flags.trace_json},
                                      {"--trace-messages", flags.trace_messages}})
      if (given) return refuse(concat(name, " writes into the run folder; leave out --no-out"));
  if (flags.serve_token && !flags.serve)
    return refuse("--serve-token belongs to --serve; give both, or leave it out");
  if (!flags.out.empty() && flags.no_out)
    return refuse("--out and --no-out contradict each other; give one");
  if (flags.no_out && flags.checkpoint_every && *flags.checkpoint_every != "none" &&
      line.plan.checkpoints.directory.empty())
    return refuse(
        "--checkpoint-every: a run without a folder has no place for checkpoints; give "
        "--checkpoint-dir DIR, or leave out --no-out");
  if (flags.profile && flags.quiet)
    return refuse("--profile prints a table, which --quiet suppresses; give one of them");
  ClusterFlags cluster_flags = flags.cluster;
  if (sim::has_agents(line.plan)) cluster_flags.place.reset();  // it is in the plan
  auto cluster = read_cluster(cluster_flags, line.plan.simulated.has_value());
  if (!cluster) return refuse(cluster.error().text);
  line.options.cluster = std::make_shared<const ClusterOptions>(std::move(*cluster));
  line.options.quiet = flags.quiet;
  line.options.trace = flags.trace;
  line.options.trace_json = flags.trace_json;
  line.options.serve = flags.serve.value_or("");
  line.options.metrics = flags.metrics.value_or("");
  line.options.tensorboard = flags.tensorboard;
  line.options.serve_token = flags.serve_token.value_or("");
  line.options.trace_messages = flags.trace_messages;
  line.options.profile = flags.profile;
  line.options.strict = flags.strict || scenario.is_strict();
  line.options.check_determinism = flags.check_determinism;
  if (flags.check_determinism && flags.resume)
    return refuse("--check-determinism compares whole runs; leave out --resume");
  if (flags.check_determinism && !line.plan.simulated)
    return refuse("--check-determinism compares simulated runs; add --simulate");
  if (!flags.out.empty()) line.options.folder = flags.out;
  if (flags.no_out) {
    line.options.folder.clear();
  } else if (line.options.folder.empty()) {
    line.options.folder = default_run_folder(line.plan.name);
  }
  line.options.command = line.plan.name;
  if (argc > 0) line.options.command = argv[0];
  return line;
}

Result run(const Scenario& scenario, int argc, char** argv) {
  if (argc > 1 && is_node_program(argv[1])) {
    Result result = empty_result(scenario.plan());
    result.exit_code = run_node_program(argc, argv);
    return result;
  }
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) {
    Result result = empty_result(line.plan);
    result.exit_code = *line.exit_code;
    return result;
  }
  const Result result = run(line.plan, line.options);
  if (!result.error.empty()) std::cerr << line.plan.name << ": " << result.error << '\n';
  return result;
}

int run_plan_file(const std::string& path, int argc, char** argv) {
  auto plan = plan_from_file(path);
  if (!plan) {
    std::cerr << plan.error().text << '\n';
    return kExitRefused;
  }
  return run(Scenario(std::move(*plan), concat("Runs the plan of ", path, ".")), argc, argv)
      .exit_code;
}

int run_plan(const Plan& plan, int argc, char** argv) {
  return run(Scenario(plan, "Continues a run."), argc, argv).exit_code;
}

}  // namespace leeway
