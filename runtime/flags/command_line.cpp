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
#include "runtime/flags/page.hpp"
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

/// The plan of the run that --resume names, or of the file of --from, with the flags applied.
Status read_plan(const Flags& flags, CommandLine& line) {
  if (flags.from && flags.resume)
    return Error{"--from and --resume contradict each other; give one"};
  if (flags.resume) {
    if (flags.seed)
      return Error{"--seed: a resumed run keeps its seed; leave out --seed or --resume"};
    if (flags.init)
      return Error{"--init: a resumed run has its weights; leave out --init or --resume"};
    auto from = find_checkpoint(*flags.resume, line.plan.name);
    if (!from) return Error{concat("--resume: ", from.error().text)};
    line.options.resume = from->path();
    line.options.folder = from->run_folder;
    line.plan = std::move(from->plan);
    // The checkpoints of a new folder go there.
    if (!flags.out.empty()) line.plan.checkpoints.directory.clear();
  }
  if (flags.from) {
    auto plan = plan_from_file(*flags.from);
    if (!plan) return Error{concat("--from: ", plan.error().text)};
    line.plan = std::move(*plan);
  }
  return apply(flags, line.plan);
}

/// --fuzz and --crash-atlas.
Status check_search_flags(const Flags& flags) {
  if (flags.fuzz && flags.crash_atlas)
    return Error{"--fuzz and --crash-atlas are two searches; give one"};
  if (flags.second && !flags.crash_atlas)
    return Error{"--second applies only to --crash-atlas; give both, or leave it out"};
  if (!flags.fuzz && !flags.crash_atlas && flags.threads)
    return Error{
        "--threads applies only to --fuzz and --crash-atlas; add one of them, or leave it out"};
  if (!flags.fuzz && flags.clusters)
    return Error{"--clusters applies only to --fuzz; add --fuzz 1..2000, or leave it out"};
  if (flags.fuzz &&
      (flags.serve || flags.metrics || flags.tensorboard || flags.trace || flags.trace_json ||
       flags.trace_messages || flags.profile || flags.check_determinism))
    return Error{
        "--fuzz writes only failing plans, and always checks determinism; leave out --serve, "
        "--metrics, --tensorboard, --trace, --trace-json, --trace-messages, --profile and "
        "--check-determinism"};
  if (flags.threads && *flags.threads > kMaxFuzzThreads)
    return Error{
        concat("--threads: ", *flags.threads, " are too many; give at most ", kMaxFuzzThreads)};
  return {};
}

/// --no-out, and what writes into the run folder.
Status check_output_flags(const Flags& flags, const Plan& plan) {
  if (flags.no_out)
    for (const auto& [name, given] : {std::pair{"--tensorboard", flags.tensorboard},
                                      {"--trace", flags.trace},
                                      {"--trace-json", flags.trace_json},
                                      {"--trace-messages", flags.trace_messages}})
      if (given) return Error{concat(name, " writes into the run folder; leave out --no-out")};
  if (const Status token =
          check_serve_token(flags.serve.has_value(), flags.serve_token.has_value());
      !token)
    return token;
  if (!flags.out.empty() && flags.no_out)
    return Error{"--out and --no-out contradict each other; give one"};
  if (flags.no_out && flags.checkpoint_every && *flags.checkpoint_every != "none" &&
      plan.checkpoints.directory.empty())
    return Error{
        "--checkpoint-every: a run without a folder has no place for checkpoints; give "
        "--checkpoint-dir DIR, or leave out --no-out"};
  if (flags.profile && flags.quiet)
    return Error{"--profile prints a table, which --quiet suppresses; give one of them"};
  return {};
}

/// Flags that contradict each other, or that need others.
Status check_flags(const Flags& flags, const Plan& plan) {
  if (const Status checked = check_search_flags(flags); !checked) return checked;
  if (flags.fuzz || flags.crash_atlas || flags.calibrate || flags.print_plan) return {};
  return check_output_flags(flags, plan);
}

/// Runs the tool that the flags ask for instead of a run. Returns its exit code; nullopt: none.
Expected<std::optional<int>> run_tool(const Flags& flags, const Plan& plan,
                                      const std::string& program) {
  if (flags.fuzz) {
    FuzzOptions options{.threads = flags.threads.value_or(0),
                        .clusters = flags.clusters,
                        .folder = flags.out.empty() ? "." : flags.out};
    options.command = needs_program(plan) ? concat(program, " --from") : "leeway run";
    if (const auto read = parse_seeds(*flags.fuzz, options); !read)
      return Error{concat("--fuzz: ", read.error().text)};
    return std::optional(fuzz(plan, options));
  }
  if (flags.crash_atlas)
    return std::optional(crash_atlas(plan, {.second = flags.second.value_or(2000),
                                            .seed = plan.seed,
                                            .threads = flags.threads.value_or(0)}));
  if (flags.calibrate) return std::optional(calibrate(plan, *flags.calibrate));
  if (flags.print_plan) {
    std::cout << to_json(plan);
    return std::optional(kExitOk);
  }
  return std::optional<int>();
}

/// Where the run takes place, and what it prints, writes and serves.
Status read_options(const Flags& flags, CommandLine& line) {
  ClusterFlags cluster_flags = flags.cluster;
  if (sim::has_agents(line.plan)) cluster_flags.place.reset();  // it is in the plan
  auto cluster = read_cluster(cluster_flags, line.plan.simulated.has_value());
  if (!cluster) return cluster.error();
  RunOptions& options = line.options;
  options.cluster = std::make_shared<const ClusterOptions>(std::move(*cluster));
  options.quiet = flags.quiet;
  options.trace = flags.trace;
  options.trace_json = flags.trace_json;
  options.serve = flags.serve.value_or("");
  options.metrics = flags.metrics.value_or("");
  options.tensorboard = flags.tensorboard;
  options.serve_token = flags.serve_token.value_or("");
  options.trace_messages = flags.trace_messages;
  options.profile = flags.profile;
  options.check_determinism = flags.check_determinism;
  if (flags.check_determinism && flags.resume)
    return Error{"--check-determinism compares whole runs; leave out --resume"};
  if (flags.check_determinism && !line.plan.simulated)
    return Error{"--check-determinism compares simulated runs; add --simulate"};
  if (!flags.out.empty()) options.folder = flags.out;
  if (flags.no_out) {
    options.folder.clear();
  } else if (options.folder.empty()) {
    options.folder = default_run_folder(line.plan.name);
  }
  return {};
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
  const std::string& name = scenario.plan().name;
  Flags flags;
  CLI::App app(
      scenario.summary() + (scenario.description().empty() ? "" : "\n\n" + scenario.description()),
      name);
  app.formatter(help_formatter());
  add_flags(app, flags, scenario.plan());
  // Flags of settings that the program decides are hidden, and refused below.
  for (const auto& flag : scenario.decided()) app.get_option(flag)->group("");
  for (const auto& [flag, text] : scenario.shown_defaults())
    app.get_option(flag)->default_str(text);
  app.footer(node_programs_help(name));
  const auto refuse = [&](const std::string& text) {
    std::cerr << name << ": " << text << '\n';
    line.exit_code = kExitRefused;
    return line;
  };
  const auto arguments = rename_old_flags(name, argc, argv);
  std::vector<const char*> words;
  for (const auto& argument : arguments) words.push_back(argument.c_str());
  try {
    parse_words(app, argc, words.data());
  } catch (const CLI::ParseError& error) {
    line.exit_code = answer(app, error, name);
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
  if (const Status read = read_plan(flags, line); !read) return refuse(read.error().text);
  if (const Status checked = check_flags(flags, line.plan); !checked)
    return refuse(checked.error().text);
  const std::string program = argc > 0 ? argv[0] : name;
  auto ended = run_tool(flags, line.plan, program);
  if (!ended) return refuse(ended.error().text);
  line.exit_code = *ended;
  if (line.exit_code) return line;
  if (const Status read = read_options(flags, line); !read) return refuse(read.error().text);
  line.options.strict = flags.strict || scenario.is_strict();
  line.options.command = program;
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
