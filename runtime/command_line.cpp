// The command line of every scenario program: each setting of the plan as a flag.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "monitoring/run_folder.hpp"
#include "runtime/calibrate.hpp"
#include "runtime/cluster_flags.hpp"
#include "runtime/fuzz.hpp"
#include "runtime/node_programs.hpp"
#include "runtime/pipeline_flags.hpp"
#include "runtime/plan_file.hpp"
#include "runtime/scenario.hpp"
#include "runtime/values.hpp"
#include "sim/world.hpp"

namespace leeway {
namespace {

constexpr unsigned kMostThreads = 1024;

/// What was given on the command line, before it is put into the plan.
struct Flags {
  std::optional<std::uint32_t> workers, shards, batch, micro_batches, chunk;
  std::optional<std::uint64_t> seed, iterations;
  std::optional<double> epochs, seconds, accuracy, learning_rate, weight_decay, warmup,
      evaluate_every;
  std::optional<std::string> staleness, balance, optimizer, data, augment, init, device;
  std::vector<std::string> slow, faults;
  bool prefetch = false;
  bool no_prefetch = false;
  bool print_plan = false;
  bool describe_json = false;
  std::string out;
  bool no_out = false;
  bool quiet = false;
  bool trace = false;
  bool profile = false;
  bool simulate = false;
  std::optional<std::string> world, gradients, fuzz, from, calibrate;
  std::optional<unsigned> threads;
  bool check_determinism = false;
  PipelineFlags pipeline;
  ClusterFlags cluster;
};

void add_training_flags(CLI::App& app, Flags& flags) {
  const std::string training = "Training";
  app.add_option("--epochs", flags.epochs, "Passes over the training data; may be a fraction")
      ->group(training);
  app.add_option("--batch", flags.batch, "Samples of one worker's iteration")->group(training);
  app.add_option("--micro-batches", flags.micro_batches,
                 "Compute each batch in this many pieces, which go through a pipeline one by one")
      ->group(training);
  app.add_option("--optimizer", flags.optimizer, "sgd, momentum, nesterov, adam, adamw or adagrad")
      ->group(training);
  app.add_option("--lr", flags.learning_rate, "Learning rate")->group(training);
  app.add_option("--weight-decay", flags.weight_decay, "Weight decay")->group(training);
  app.add_option("--warmup", flags.warmup, "Epochs over which the learning rate rises")
      ->group(training);
  app.add_option("--evaluate-every", flags.evaluate_every,
                 "Epochs between evaluations; 0: at the end alone")
      ->group(training);
  app.add_option("--iterations", flags.iterations, "Stop after this many iterations of all workers")
      ->group(training);
  app.add_option("--seconds", flags.seconds, "Stop after this time")->group(training);
  app.add_option("--until-accuracy", flags.accuracy, "Stop at this test accuracy, 0 to 1")
      ->group(training);
  app.add_option("--data", flags.data,
                 "Directory of the data set (Fashion-MNIST), or the CSV or text file to train on")
      ->group(training);
  app.add_option("--augment", flags.augment,
                 "Change training images at random: flip (left to right), shift=2 (by up to 2 "
                 "pixels each way), both with a comma between, or none")
      ->group(training);
  app.add_option("--init", flags.init, "Safetensors file of the weights to start from")
      ->group(training);
  app.add_option("--seed", flags.seed, "Seed of all randomness")->group(training);
}

void add_actor_flags(CLI::App& app, Flags& flags) {
  const std::string actors = "Actors";
  app.add_option("--workers", flags.workers, "Workers")->group(actors);
  app.add_option("--shards", flags.shards, "Shards that hold the parameters")->group(actors);
  app.add_option("--staleness", flags.staleness,
                 "Iterations that a worker may be ahead of the slowest: 0, 1, 2, ..., bsp (a "
                 "barrier), asp (no bound), \"adaptive(1,8)\" (1 to 8, as much as it takes) or "
                 "\"backup(N)\" (a barrier that does not wait for the last N)")
      ->group(actors);
  app.add_option("--balance", flags.balance,
                 "Samples of an iteration: equal (the batch), or speed (the more the faster a "
                 "worker is, their mean the batch)")
      ->group(actors);
  app.add_flag("--prefetch", flags.prefetch,
               "Pull the next weights while computing; costs one iteration of staleness")
      ->group(actors);
  app.add_flag("--no-prefetch", flags.no_prefetch, "Pull when the weights are needed")
      ->group(actors);
  app.add_option("--chunk", flags.chunk, "Samples of one lease; 0 chooses")->group(actors);
  app.add_option("--device", flags.device,
                 "Where to compute: cpu, cuda, cuda:1, or a list such as "
                 "workers=cuda,worker3=cpu,shards=cuda:0")
      ->group(actors);
  app.add_option("--slow", flags.slow,
                 "Slow a worker down, or all: 3:4x (worker 3, four times), 3:4x@20%/50 (in 20% of "
                 "its iterations, in bursts of 50), all:pareto(1.5), 3:pauses(200ms/50), "
                 "3:decay(8x/1000), 3:sharing(3x,100/300), 3:trace(FILE), or several with commas "
                 "between; none removes the scenario's own")
      ->allow_extra_args(false)
      ->group(actors);
  app.add_option(
         "--fault", flags.faults,
         "Make something fail: 2:crash@3s, 2:crash(500ms)@100 (and start it again), 2:joins@3s, "
         "2:leaves@3s, 2:freeze(1s)@100, 2:throws@100, 2:killed@100; in a simulation also slow, "
         "break, delay, "
         "silence, partition, slow-link and stop-clock, see docs/simulator.md; none removes "
         "the scenario's own; may be given several times")
      ->allow_extra_args(false)
      ->group(actors);
  app.add_flag("--simulate", flags.simulate,
               "Run in virtual time, every worker and shard on a node of its own")
      ->group(actors);
  app.add_option("--world", flags.world,
                 "Simulate in this world: name=value with commas between, of nodes (each, one), "
                 "cores, speed (GFLOP/s), memory (GB/s), noise, latency, local_latency, jitter, "
                 "link (Gbit/s), detection, message, timer, slice, contention, cold; for example "
                 "latency=200us,link=1; @world.toml in front reads what --calibrate has written")
      ->group(actors);
  app.add_option("--calibrate", flags.calibrate,
                 "Measure this machine with the scenario's model, write the world that it is into "
                 "this file, and run nothing")
      ->group(actors);
  app.add_flag("--check-determinism", flags.check_determinism,
               "In a simulation: run it twice more first, and compare them step by step")
      ->group(actors);
  app.add_option("--gradients", flags.gradients,
                 "In a simulation: real, or none to study protocol and time alone")
      ->group(actors);
}

void add_search_flags(CLI::App& app, Flags& flags) {
  const std::string search = "Search";
  app.add_option("--fuzz", flags.fuzz,
                 "Simulate runs drawn from these seeds, 1..2000 for example, with faults and under "
                 "all checkers; a run that fails is made smaller and kept as a plan file in --out")
      ->group(search);
  app.add_option("--threads", flags.threads, "Threads of a search; 0: one a core")->group(search);
  app.add_option("--from", flags.from, "Start from the plan of this file instead of the scenario's")
      ->group(search);
}

void add_output_flags(CLI::App& app, Flags& flags) {
  const std::string output = "Output";
  app.add_option("--out", flags.out, "Folder that keeps the run [runs/NAME-DATE-TIME]")
      ->group(output);
  app.add_flag("--no-out", flags.no_out, "Keep nothing")->group(output);
  app.add_flag("--trace", flags.trace, "Write every event into the run folder")->group(output);
  app.add_flag("--profile", flags.profile, "Show where the time went, layer by layer")
      ->group(output);
  app.add_flag("--quiet", flags.quiet, "No progress, no summary")->group(output);
  app.add_flag("--plan", flags.print_plan, "Print the plan as JSON, and run nothing")
      ->group(output);
  app.add_flag("--describe-json", flags.describe_json,
               "Print name, summary, description and plan as JSON")
      ->group(output);
}

template <class T>
void take(T& target, const std::optional<T>& flag) {
  if (flag) target = *flag;
}

/// `counted`: a flag says how many workers there are.
Status apply_trouble(const Flags& flags, bool counted, Plan& plan) {
  if (auto status = apply_slow(flags.slow, plan.stragglers); !status) return status;
  for (const auto& text : flags.faults) {
    if (text == "none") {
      plan.faults.clear();
      continue;
    }
    auto fault = parse_fault(text);
    if (!fault) return fault.error();
    plan.faults.push_back(*fault);
  }
  // A straggler of the scenario's own goes with its worker; one that was asked for is checked like
  // everything else.
  if (counted && flags.faults.empty())
    std::erase_if(plan.faults, [&](const auto& fault) {
      return fault.actor.kind == RoleKind::worker && fault.actor.index >= plan.workers;
    });
  if (counted && flags.slow.empty())
    std::erase_if(plan.stragglers,
                  [&](const auto& straggler) { return straggler.worker >= plan.workers; });
  return {};
}

Status apply_world(const Flags& flags, Plan& plan) {
  if (flags.simulate && !plan.simulated) plan.simulated = plan::World{};
  if (flags.world) {
    const auto world = sim::parse_world(*flags.world, plan.simulated.value_or(plan::World{}));
    if (!world) return Error{concat("--", world.error().text)};
    plan.simulated = *world;
  }
  if (!flags.gradients) return {};
  if (*flags.gradients != "real" && *flags.gradients != "none")
    return Error{concat("--gradients: \"", *flags.gradients, "\" is not known; give real or none")};
  const bool none = *flags.gradients == "none";
  if (none && !plan.simulated)
    return Error{"--gradients none trains nothing; give --simulate with it, or leave it out"};
  if (plan.simulated) plan.simulated->cost_only = none;
  return {};
}

Status apply(const Flags& flags, Plan& plan) {
  const std::uint32_t workers_before = plan.workers;
  take(plan.workers, flags.workers);
  take(plan.shards, flags.shards);
  take(plan.batch, flags.batch);
  take(plan.micro_batches, flags.micro_batches);
  take(plan.chunk, flags.chunk);
  take(plan.seed, flags.seed);
  take(plan.stop.iterations, flags.iterations);
  take(plan.stop.epochs, flags.epochs);
  take(plan.stop.seconds, flags.seconds);
  take(plan.stop.accuracy, flags.accuracy);
  take(plan.evaluate_every, flags.evaluate_every);
  take(plan.schedule.warmup, flags.warmup);
  if (flags.prefetch && flags.no_prefetch)
    return Error{"--prefetch and --no-prefetch contradict each other; give one"};
  if (flags.prefetch) plan.prefetch = true;
  if (flags.no_prefetch) plan.prefetch = false;
  if (flags.optimizer) {
    auto optimizer = parse_optimizer(*flags.optimizer);
    if (!optimizer) return optimizer.error();
    plan.optimizer = *optimizer;
  }
  take(plan.optimizer.learning_rate, flags.learning_rate);
  take(plan.optimizer.weight_decay, flags.weight_decay);
  if (flags.staleness) {
    auto policy = parse_staleness(*flags.staleness);
    if (!policy) return policy.error();
    plan.consistency = *policy;
  }
  if (flags.balance) {
    auto balance = parse_balance(*flags.balance);
    if (!balance) return balance.error();
    plan.balance = *balance;
  }
  if (flags.augment) {
    auto augment = parse_augment(*flags.augment);
    if (!augment) return augment.error();
    plan.augment = *augment;
  }
  if (flags.init && flags.init->empty())
    return Error{"--init: the path is empty; give a safetensors file, or leave the flag out"};
  take(plan.init_from, flags.init);
  take(plan.device, flags.device);
  if (flags.data) {
    if (auto* fashion = std::get_if<plan::FashionMnist>(&plan.data)) {
      fashion->directory = *flags.data;
    } else if (auto* table = std::get_if<plan::Csv>(&plan.data)) {
      table->train = *flags.data;
    } else if (auto* writing = std::get_if<plan::Writing>(&plan.data)) {
      writing->file = *flags.data;
    } else {
      return Error{"--data: this scenario makes its own data; leave the flag out"};
    }
  }
  if (auto status = apply_world(flags, plan); !status) return status;
  if (auto status = apply_pipeline(flags.pipeline, flags.workers, plan); !status) return status;
  const bool counted = flags.workers || plan.workers != workers_before;
  if (auto status = apply_trouble(flags, counted, plan); !status) return status;
  return validate(plan);
}

void print_manifest(const Scenario& scenario) {
  nlohmann::ordered_json json;
  json["name"] = scenario.plan().name;
  json["summary"] = scenario.summary();
  json["description"] = scenario.description();
  json["plan"] = nlohmann::ordered_json::parse(to_json(scenario.plan()));
  std::cout << json.dump(2) << '\n';
}

/// The nearest flag to one that is not known.
std::string suggestion(const CLI::App& app) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  for (const auto& argument : app.remaining()) {
    const auto near = nearest(argument.substr(0, argument.find('=')), known);
    if (!near.empty()) return concat("; did you mean ", near, "?");
  }
  return "; --help lists all flags";
}

}  // namespace

CommandLine parse(const Scenario& scenario, int argc, char** argv) {
  CommandLine line{scenario.plan(), {}, std::nullopt};
  Flags flags;
  CLI::App app(
      scenario.summary() + (scenario.description().empty() ? "" : "\n\n" + scenario.description()),
      scenario.plan().name);
  add_training_flags(app, flags);
  add_actor_flags(app, flags);
  add_pipeline_flags(app, flags.pipeline);
  add_cluster_flags(app, flags.cluster);
  add_search_flags(app, flags);
  add_output_flags(app, flags);
  app.footer(node_programs_help(scenario.plan().name));
  app.allow_extras();
  const auto refuse = [&](const std::string& text) {
    std::cerr << scenario.plan().name << ": " << text << '\n';
    line.exit_code = 2;
    return line;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    line.exit_code = 0;
    return line;
  } catch (const CLI::ParseError& error) {
    return refuse(concat(error.what(), "; --help lists all flags"));
  }
  if (!app.remaining().empty())
    return refuse(concat("\"", app.remaining().front(), "\" is not known", suggestion(app)));
  if (flags.describe_json) {
    print_manifest(scenario);
    line.exit_code = 0;
    return line;
  }
  if (flags.from) {
    auto plan = plan_from_file(*flags.from);
    if (!plan) return refuse(concat("--from: ", plan.error().text));
    line.plan = std::move(*plan);
  }
  if (const auto applied = apply(flags, line.plan); !applied) return refuse(applied.error().text);
  if (!flags.fuzz && flags.threads)
    return refuse("--threads is of a search; give --fuzz 1..2000 with it, or leave it out");
  if (flags.fuzz && (flags.trace || flags.profile || flags.check_determinism))
    return refuse(
        "--fuzz keeps nothing but plans that fail, and checks determinism by itself; leave out "
        "--trace, --profile and --check-determinism");
  if (flags.fuzz && flags.threads && *flags.threads > kMostThreads)
    return refuse(
        concat("--threads: ", *flags.threads, " are too many; give at most ", kMostThreads));
  if (flags.fuzz) {
    FuzzOptions options{.threads = flags.threads.value_or(0),
                        .folder = flags.out.empty() ? "." : flags.out};
    // Data and layers that a program brings along are known to it alone.
    const bool own = to_json(line.plan).find("\"custom\"") != std::string::npos;
    options.command = own ? concat(argv[0], " --from") : "leeway run";
    if (const auto read = parse_seeds(*flags.fuzz, options); !read)
      return refuse(concat("--fuzz: ", read.error().text));
    line.exit_code = fuzz(line.plan, options);
    return line;
  }
  if (flags.calibrate) {
    line.exit_code = calibrate(line.plan, *flags.calibrate);
    return line;
  }
  if (flags.print_plan) {
    std::cout << to_json(line.plan);
    line.exit_code = 0;
    return line;
  }
  if (flags.trace && flags.no_out)
    return refuse("--trace writes into the run folder; leave out --no-out");
  if (!flags.out.empty() && flags.no_out)
    return refuse("--out and --no-out contradict each other; give one");
  if (flags.profile && flags.quiet)
    return refuse("--profile prints a table, which --quiet suppresses; give one of them");
  auto cluster = read_cluster(flags.cluster, line.plan.simulated.has_value());
  if (!cluster) return refuse(cluster.error().text);
  line.options.cluster = std::move(*cluster);
  line.options.quiet = flags.quiet;
  line.options.trace = flags.trace;
  line.options.profile = flags.profile;
  line.options.check_determinism = flags.check_determinism;
  if (flags.check_determinism && !line.plan.simulated)
    return refuse("--check-determinism compares simulated runs; give --simulate with it");
  if (!flags.no_out)
    line.options.folder = flags.out.empty() ? default_run_folder(line.plan.name) : flags.out;
  return line;
}

Result run(const Scenario& scenario, int argc, char** argv) {
  if (argc > 1 && is_node_program(argv[1])) {
    Result result;
    result.exit_code = run_node_program(argc, argv);
    return result;
  }
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) {
    Result result;
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
    return 2;
  }
  return run(Scenario(std::move(*plan), concat("Runs the plan of ", path, ".")), argc, argv)
      .exit_code;
}

}  // namespace leeway
