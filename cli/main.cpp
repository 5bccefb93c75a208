// leeway: finds, describes and runs scenarios.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>

#include "cli/blame.hpp"
#include "cli/commands.hpp"
#include "cli/pipeline.hpp"
#include "cli/reproduce.hpp"
#include "cli/trace.hpp"
#include "cli/trained.hpp"
#include "cli/view.hpp"
#include "cli/what_if.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "kv/launch_command.hpp"
#include "kv/table.hpp"
#include "runtime/cluster/node_programs.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/usage.hpp"
#include "runtime/outcome.hpp"

namespace cli = leeway::cli;
using leeway::add_switch;
using leeway::add_value;
using leeway::concat;

namespace {

constexpr const char* kRunHelp =
    "Usage: leeway run NAME|FILE [ARGS...]\n\n"
    "Runs the scenario NAME, or the plan in FILE (.toml or .json), with ARGS.\n\n"
    "  leeway run fashion-mlp --workers 4\n"
    "  leeway run fashion-mlp --help    the arguments of this scenario\n"
    "  leeway run plan.toml\n";

constexpr const char* kResumeHelp =
    "Usage: leeway resume RUN|latest [ARGS...]\n\n"
    "Continues a run from its latest checkpoint, with its plan and ARGS.\n\n"
    "  leeway resume latest                    the run in runs/ that has the latest checkpoint\n"
    "  leeway resume runs/fashion-mlp-20261123-120000 --workers 8\n"
    "  leeway resume RUN/checkpoints/000003    from this checkpoint\n"
    "  leeway resume RUN --nodes a:4242,b:4242 on the nodes of a cluster\n\n"
    "A run of `leeway launch` starts its program again: leeway launch --resume RUN PROGRAM\n";

/// `leeway resume`, like `leeway run`, passes the flags to the program.
int resume(const std::vector<std::string>& words) {
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    std::cout << kResumeHelp;
    return leeway::kExitOk;
  }
  if (words.empty() || words[0].starts_with('-')) {
    std::cerr << "leeway: give the folder of a run, or latest\n\n" << kResumeHelp;
    return leeway::kExitRefused;
  }
  return cli::resume(words[0], {words.begin() + 1, words.end()});
}

/// `leeway run` passes all its words to the program, flags included, without parsing them.
int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::cerr << "leeway: nothing to run; give a scenario's name or a plan file\n\n" << kRunHelp;
    return leeway::kExitRefused;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    std::cout << kRunHelp;
    return leeway::kExitOk;
  }
  if (words[0].starts_with('-')) {
    std::cerr << "leeway: " << words[0] << ": options go after the scenario name; move it there\n\n"
              << kRunHelp;
    return leeway::kExitRefused;
  }
  return cli::run(words[0], {words.begin() + 1, words.end()});
}

CLI::App* add_cert(CLI::App& app, leeway::CertificateOptions& options) {
  auto* cert = app.add_subcommand("cert", "Make a cluster's certificates, for --tls");
  add_value(*cert, "DIR", options.folder,
            "Folder of the cluster's certificate authority (CA); created if it is missing")
      ->required();
  add_value(*cert, "--node", options.nodes,
            "Name of a node (host name or address), which gets the folder DIR/NAME; can be "
            "repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  add_value(*cert, "--days", options.days, "Days for which the nodes' certificates are valid",
            concat("1 to ", leeway::limits::kMaxCertificateDays))
      ->capture_default_str();
  return cert;
}

CLI::App* add_sample(CLI::App& app, std::string& folder, leeway::SampleOptions& options) {
  auto* sample = app.add_subcommand("sample", "Continue a prompt with a trained model");
  add_value(*sample, "RUN", folder, "Folder of a run on text, such as runs/char-gpt-...")
      ->required();
  add_value(*sample, "--prompt", options.prompt, "Text to continue [the beginning of a line]");
  add_value(*sample, "--characters", options.characters, "Characters to write", "1 or more")
      ->capture_default_str();
  add_value(*sample, "--temperature", options.temperature,
            "1 draws from the model's distribution, less prefers likely characters, 0 always "
            "takes the most likely one")
      ->capture_default_str();
  add_value(*sample, "--seed", options.seed, "Seed of the draws")->capture_default_str();
  return sample;
}

CLI::App* add_checkpoints(CLI::App& app, std::string& folder, cli::CheckpointsOptions& options) {
  auto* checkpoints =
      app.add_subcommand("checkpoints", "List, verify or prune the checkpoints of a run");
  add_value(*checkpoints, "RUN", folder, "Folder of the run, or of its checkpoints")->required();
  auto* verify =
      add_switch(*checkpoints, "--verify", options.verify, "Check the digests of all files");
  add_value(*checkpoints, "--prune", options.keep, "Remove all but this number, the latest ones",
            concat("1 to ", cli::kMaxKept))
      ->excludes(verify);
  return checkpoints;
}

CLI::App* add_messages(CLI::App& app, std::string& folder, cli::MessagesOptions& options) {
  auto* messages =
      app.add_subcommand("messages", "Print the messages of a run with --trace-messages");
  add_value(*messages, "RUN", folder, "Folder of the run, or its file messages.bin")->required();
  add_value(*messages, "--from", options.from, "Only of this sender: worker2, shard0, scheduler");
  add_value(*messages, "--to", options.to, "Only to this receiver");
  add_value(*messages, "--kind", options.kind, "Only of this kind, such as pull, weights or push");
  add_value(*messages, "--limit", options.limit, "Only this number of messages, the first ones",
            "1 or more, or 0 for all");
  add_switch(*messages, "--json", options.json, "One JSON object per line");
  return messages;
}

/// Adds the commands that parse their arguments themselves; returns their names.
std::vector<std::string> add_cluster_commands(CLI::App& app) {
  app.add_subcommand("node", "Host workers and shards for programs run with --nodes");
  app.add_subcommand("up", "Start several nodes on this host");
  app.add_subcommand("join", "Host missing workers of a running program");
  app.add_subcommand("status", "Show a job that runs on nodes");
  app.add_subcommand("doctor", "Check nodes before a run");
  app.add_subcommand("launch", "Start the workers of a store, in a program's own processes");
  return {"node", "up", "join", "status", "doctor"};
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Leeway trains models asynchronously, with bounded staleness.", "leeway");
  app.formatter(leeway::help_formatter());
  app.set_version_flag("--version", "leeway " LEEWAY_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 ok, 1 the run failed, 2 bad usage, 130 interrupted.");

  const auto* list = app.add_subcommand("list", "List the installed scenarios");
  std::string name;
  bool plan_only = false;
  auto* describe = app.add_subcommand("describe", "Describe a scenario and show its plan");
  add_value(*describe, "NAME", name, "Name of the scenario, as `leeway list` prints it")
      ->required();
  add_switch(*describe, "--plan", plan_only, "Print only the default plan, as a plan file");
  const auto* settings = app.add_subcommand("settings", "List the settings of a plan");
  auto* fuzz = app.add_subcommand(
      "fuzz", "Simulate runs drawn from seeds, with faults, and search for violations");
  std::string target, seeds = "1..2000", out;
  unsigned threads = 0;
  bool clusters = false;
  add_value(*fuzz, "SCENARIO", target, "Name of the scenario, or a plan file")->required();
  add_value(*fuzz, "--seeds", seeds, "First and last seed, or one seed")->capture_default_str();
  add_value(*fuzz, "--threads", threads, "Concurrent runs; 0 is one per core")
      ->capture_default_str();
  add_switch(*fuzz, "--clusters", clusters, "Only runs on simulated nodes, not one in four");
  add_value(*fuzz, "--out", out, "Folder for the plans that fail [current folder]");
  auto* atlas = app.add_subcommand("atlas", "Tables over many simulated runs");
  auto* crashes = atlas->add_subcommand(
      "crashes", "Simulate the loss of each process after each message that it sends");
  auto* staleness = atlas->add_subcommand(
      "staleness", "Compare ways of keeping workers together; arguments as of staleness-atlas");
  staleness->prefix_command()->set_help_flag();
  atlas->require_subcommand(1);
  const auto* reproduce = cli::add_reproduce(app);
  std::uint64_t second = 2000, atlas_seed = 1;
  add_value(*crashes, "PLAN", target, "Name of a scenario, or a plan file")->required();
  add_value(*crashes, "--second", second, "Further runs, with a second loss during the recovery")
      ->capture_default_str();
  add_value(*crashes, "--seed", atlas_seed, "Seed of these runs")->capture_default_str();
  add_value(*crashes, "--threads", threads, "Concurrent runs; 0 is one per core")
      ->capture_default_str();
  auto* calibrate = app.add_subcommand(
      "calibrate", "Measure this machine with a scenario's model, for simulations");
  std::string model = "fashion-mlp", world = "world.toml";
  add_value(*calibrate, "SCENARIO", model, "Name of the scenario, or a plan file")
      ->capture_default_str();
  add_value(*calibrate, "--out", world, "File for the measured world, for --world @FILE")
      ->capture_default_str();
  leeway::CertificateOptions certificates;
  const auto* cert = add_cert(app, certificates);
  cli::ScheduleOptions schedule_options;
  const auto* schedule = cli::add_schedule(app, schedule_options);
  cli::PartitionOptions partition_options;
  const auto* partition = cli::add_partition(app, partition_options);
  std::string run_folder;
  leeway::SampleOptions sampling;
  const auto* sample = add_sample(app, run_folder, sampling);
  cli::CheckpointsOptions checkpoints_options;
  const auto* checkpoints = add_checkpoints(app, run_folder, checkpoints_options);
  cli::MessagesOptions messages_options;
  const auto* messages = add_messages(app, run_folder, messages_options);
  cli::TraceOptions trace_options;
  const auto* trace = cli::add_trace(app, trace_options);
  cli::WhatIfCommand what_if_command;
  const auto* what_if = cli::add_what_if(app, what_if_command);
  cli::ViewCommand view_command;
  const auto* view = cli::add_view(app, view_command);
  cli::TopCommand top_command;
  const auto* top = cli::add_top(app, top_command);
  cli::ReportCommand report_command;
  const auto* report = cli::add_report(app, report_command);
  cli::CompareCommand compare_command;
  const auto* compare = cli::add_compare(app, compare_command);
  cli::EventsCommand events_command;
  const auto* events = cli::add_events(app, events_command);
  cli::BlameOptions blame_options;
  const auto* blame = cli::add_blame(app, blame_options);
  cli::EvaluateCommand evaluate_command;
  const auto* evaluate = cli::add_evaluate(app, evaluate_command);
  cli::PredictCommand predict_command;
  const auto* predict = cli::add_predict(app, predict_command);
  cli::ExportCommand export_command;
  const auto* exporting = cli::add_export(app, export_command);
  const auto cluster_commands = add_cluster_commands(app);
  auto* run_command = app.add_subcommand("run", "Run a scenario, or a plan file");
  run_command->prefix_command()->set_help_flag();
  auto* resume_command = app.add_subcommand("resume", "Continue a run from its latest checkpoint");
  resume_command->prefix_command()->set_help_flag();

  if (argc < 2) {
    std::cerr << app.help();
    return leeway::kExitRefused;
  }
  const std::string first = argv[1];
  if (std::find(cluster_commands.begin(), cluster_commands.end(), first) != cluster_commands.end())
    return leeway::run_node_program(argc, argv);
  if (first == "launch")
    return leeway::kv::run_launch_command("leeway launch", {argv + 2, argv + argc});
  std::vector<std::string> known;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  if (!first.starts_with('-') && std::find(known.begin(), known.end(), first) == known.end()) {
    std::cerr << "leeway: unknown command \"" << first << '"' << leeway::suggest(first, known)
              << '\n';
    return leeway::kExitRefused;
  }
  try {
    // The programs of these commands check their words themselves.
    const std::string_view next = argc > 2 ? argv[2] : "";
    if (first == "reproduce" && !next.empty() && !next.starts_with('-'))
      if (const auto checked = cli::check_reproduction(next); !checked)
        return cli::refuse(checked.error());
    const bool of_program = first == "run" || first == "resume" ||
                            (first == "atlas" && next == "staleness") ||
                            (first == "reproduce" && !next.empty() && !next.starts_with('-'));
    if (of_program)
      app.parse(argc, argv);
    else
      leeway::parse_words(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return leeway::answer(app, error, "leeway");
  }
  if (list->parsed()) return cli::list();
  if (describe->parsed()) return cli::describe(name, plan_only);
  if (settings->parsed()) return cli::settings();
  if (fuzz->parsed()) {
    std::vector<std::string> args{"--threads", std::to_string(threads)};
    if (clusters) args.emplace_back("--clusters");
    if (!out.empty()) args.insert(args.end(), {"--out", out});
    return cli::fuzz(target, seeds, args);
  }
  if (crashes->parsed())
    return cli::run(target, {"--crash-atlas", "--second", std::to_string(second), "--seed",
                             std::to_string(atlas_seed), "--threads", std::to_string(threads)});
  if (staleness->parsed()) return cli::run("staleness-atlas", staleness->remaining());
  if (reproduce->parsed()) return cli::reproduce(*reproduce);
  if (calibrate->parsed()) return cli::run(model, {"--calibrate", world});
  if (sample->parsed()) return cli::sample(run_folder, sampling);
  if (evaluate->parsed()) return cli::evaluate(evaluate_command);
  if (predict->parsed()) return cli::predict(predict_command);
  if (exporting->parsed()) return cli::export_model(export_command);
  if (cert->parsed()) return cli::cert(certificates);
  if (schedule->parsed()) return cli::schedule(schedule_options);
  if (checkpoints->parsed()) return cli::checkpoints(run_folder, checkpoints_options);
  if (messages->parsed()) return cli::messages(run_folder, messages_options);
  if (trace->parsed()) return cli::trace(trace_options);
  if (what_if->parsed()) return cli::what_if(what_if_command);
  if (blame->parsed()) return cli::blame(blame_options);
  if (view->parsed()) return cli::view(view_command);
  if (top->parsed()) return cli::top(top_command);
  if (report->parsed()) return cli::report(report_command);
  if (compare->parsed()) return cli::compare(compare_command);
  if (events->parsed()) return cli::events(events_command);
  if (resume_command->parsed()) return resume(resume_command->remaining());
  if (partition->parsed()) return cli::partition(partition_options);
  return run(run_command->remaining());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    leeway::kv::register_tables();  // for nodes with the shards of stores
    const int code = parse_and_run(argc, argv);
    std::cout.flush();
    if (std::cout) return code;
    std::cerr << "leeway: " << leeway::kUnwritten << '\n';
    return code == leeway::kExitOk ? leeway::kExitFailed : code;
  } catch (const std::exception& error) {
    std::cerr << "leeway: " << error.what() << '\n';
    return leeway::kExitFailed;
  }
}
