#include "runtime/flags.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "runtime/values.hpp"
#include "sim/world.hpp"

namespace leeway {
namespace {

/// Adds options of one group, with what the plan has where they are not given.
class Group {
 public:
  Group(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

  template <class Target>
  CLI::Option* add(const char* flag, Target& target, const char* text) {
    return app_.add_option(flag, target, text)->group(name_);
  }
  template <class Target, class Value>
  CLI::Option* add(const char* flag, Target& target, const char* text, const Value& planned) {
    return add(flag, target, text)->default_str(concat(planned));
  }
  void add_flag(const char* flag, bool& target, const char* text) {
    app_.add_flag(flag, target, text)->group(name_);
  }

 private:
  CLI::App& app_;
  std::string name_;
};

/// Where the data comes from, if that is for --data to say.
std::string data_path(const plan::DataSource& data) {
  if (const auto* fashion = std::get_if<plan::FashionMnist>(&data)) return fashion->directory;
  if (const auto* table = std::get_if<plan::Csv>(&data)) return table->train;
  if (const auto* writing = std::get_if<plan::TextCorpus>(&data)) return writing->file;
  return "";
}

void add_training_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group training(app, "Training");
  training.add("--epochs", flags.epochs,
               "Passes over the training data; may be a fraction; 0: no limit", plan.stop.epochs);
  training.add("--batch", flags.batch, "Samples of one worker's iteration", plan.batch);
  training.add("--micro-batches", flags.micro_batches,
               "Compute each batch in this many pieces, which go through a pipeline one by one",
               plan.micro_batches);
  training.add("--optimizer", flags.optimizer, "sgd, momentum, nesterov, adam, adamw or adagrad",
               text_of(plan.optimizer));
  training.add("--lr", flags.learning_rate, "Learning rate", plan.optimizer.learning_rate);
  training.add("--weight-decay", flags.weight_decay, "Weight decay", plan.optimizer.weight_decay);
  training.add("--warmup", flags.warmup, "Epochs over which the learning rate rises",
               plan.schedule.warmup);
  training.add("--evaluate-every", flags.evaluate_every,
               "Epochs between evaluations; 0: at the end alone", plan.evaluate_every);
  training.add("--iterations", flags.iterations,
               "Stop after this many iterations of all workers, or of all pipelines; 0: no limit",
               plan.stop.iterations);
  training.add("--seconds", flags.seconds, "Stop after this time; 0: no limit", plan.stop.seconds);
  training.add("--until-accuracy", flags.accuracy, "Stop at this test accuracy, 0 to 1; 0: at none",
               plan.stop.accuracy);
  training.add("--data", flags.data,
               "Directory of the data set (Fashion-MNIST), or the CSV or text file to train on",
               data_path(plan.data));
  training.add("--augment", flags.augment,
               "Change training images at random: flip (left to right), shift=2 (by up to 2 "
               "pixels each way), both with a comma between, or none",
               text_of(plan.augment));
  training.add("--init", flags.init, "Safetensors file of the weights to start from",
               plan.init_from);
  training.add("--seed", flags.seed, "Seed of all randomness", plan.seed);
}

void add_actor_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.add("--workers", flags.workers, "Workers", plan.workers);
  actors.add("--shards", flags.shards, "Shards that hold the parameters", plan.shards);
  actors.add("--staleness", flags.staleness,
             "Iterations that a worker may be ahead of the slowest: 0, 1, 2, ..., bsp (a "
             "barrier), asp (no bound), \"adaptive(1,8)\" (1 to 8, as much as it takes) or "
             "\"backup(N)\" (a barrier that does not wait for the last N)",
             text_of(plan.consistency));
  actors.add("--balance", flags.balance,
             "Samples of an iteration: equal (the batch), or speed (the more the faster a "
             "worker is, their mean the batch)",
             text_of(plan.balance));
  actors.add_flag("--prefetch", flags.prefetch,
                  "Pull the next weights while computing; costs one iteration of staleness");
  actors.add_flag("--no-prefetch", flags.no_prefetch, "Pull when the weights are needed");
  actors.add("--chunk", flags.chunk, "Samples of one lease; 0 chooses", plan.chunk);
  actors.add("--device", flags.device,
             "Where to compute: cpu, cuda, cuda:1, or a list such as "
             "workers=cuda,worker3=cpu,shards=cuda:0",
             plan.device);
}

void add_trouble_flags(CLI::App& app, Flags& flags) {
  Group actors(app, "Actors");
  actors
      .add("--slow", flags.slow,
           "Slow a worker down, or all: 3:4x (worker 3, four times), 3:4x@20%/50 (in 20% of "
           "its iterations, in bursts of 50), all:pareto(1.5), 3:pauses(200ms/50), "
           "3:decay(8x/1000), 3:sharing(3x,100/300), 3:trace(FILE), or several with commas "
           "between; none removes the scenario's own")
      ->allow_extra_args(false);
  actors
      .add("--fault", flags.faults,
           "Make something fail: 2:crash@3s, 2:crash(500ms)@100 (and start it again), 2:joins@3s, "
           "2:leaves@3s, 2:freeze(1s)@100, 2:throws@100, 2:killed@100; in a simulation also slow, "
           "break, delay, silence, partition, slow-link and stop-clock, see docs/simulator.md; "
           "none removes the scenario's own; may be given several times")
      ->allow_extra_args(false);
}

void add_simulation_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.add_flag("--simulate", flags.simulate,
                  "Run in virtual time, every worker and shard on a node of its own");
  actors.add("--world", flags.world,
             "Simulate in this world: name=value with commas between, of nodes (each, one), "
             "cores, speed (GFLOP/s), memory (GB/s), noise, latency, local_latency, jitter, "
             "link (Gbit/s), detection, message, timer, slice, contention, cold; for example "
             "latency=200us,link=1; @world.toml in front reads what --calibrate has written");
  actors.add("--calibrate", flags.calibrate,
             "Measure this machine with the scenario's model, write the world that it is into "
             "this file, and run nothing");
  actors.add_flag("--check-determinism", flags.check_determinism,
                  "In a simulation: run it twice more first, and compare them step by step");
  actors.add("--gradients", flags.gradients,
             "In a simulation: real, or none to study protocol and time alone",
             plan.simulated && plan.simulated->cost_only ? "none" : "real");
}

void add_search_flags(CLI::App& app, Flags& flags) {
  Group search(app, "Search");
  search.add("--fuzz", flags.fuzz,
             "Simulate runs drawn from these seeds, 1..2000 for example, with faults and under "
             "all checkers; a run that fails is made smaller and kept as a plan file in --out");
  search.add("--threads", flags.threads, "Threads of a search; 0: one a core", 0);
  search.add("--from", flags.from, "Start from the plan of this file instead of the scenario's");
}

void add_output_flags(CLI::App& app, Flags& flags) {
  Group output(app, "Output");
  output.add("--out", flags.out, "Folder that keeps the run", "runs/NAME-DATE-TIME");
  output.add_flag("--no-out", flags.no_out, "Keep nothing");
  output.add_flag("--trace", flags.trace, "Write every event into the run folder");
  output.add_flag("--profile", flags.profile, "Show where the time went, layer by layer");
  output.add_flag("--quiet", flags.quiet, "No progress, no summary");
  output.add_flag("--plan", flags.print_plan, "Print the plan as JSON, and run nothing");
  output.add_flag("--describe-json", flags.describe_json,
                  "Print name, summary, description and plan as JSON");
}

template <class T>
void take(T& target, const std::optional<T>& flag) {
  if (flag) target = *flag;
}

bool is_missing(Address actor, const Plan& plan) {
  return actor.kind == RoleKind::worker && actor.index >= plan.workers;
}

/// Whether the fault befalls a worker that is not there, or needs one.
bool names_missing(const plan::Fault& fault, const Plan& plan) {
  const auto of_pair = [&](const auto& kind) {
    if constexpr (requires { kind.peer; }) return is_missing(kind.peer, plan);
    if constexpr (requires { kind.with; })
      return std::ranges::any_of(kind.with, [&](Address with) { return is_missing(with, plan); });
    return false;
  };
  return is_missing(fault.actor, plan) || std::visit(of_pair, fault.kind);
}

/// `counted`: flags say how many workers there are. What the scenario has for one that is not there
/// any more goes with it; what is asked for is checked like everything else.
Status apply_trouble(const Flags& flags, bool counted, Plan& plan) {
  if (counted) {
    std::erase_if(plan.faults, [&](const auto& fault) { return names_missing(fault, plan); });
    std::erase_if(plan.stragglers, [&](const auto& straggler) {
      return !straggler.all && straggler.worker >= plan.workers;
    });
  }
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

Status apply_training(const Flags& flags, Plan& plan) {
  if (flags.optimizer) {
    auto optimizer = parse_optimizer(*flags.optimizer);
    if (!optimizer) return optimizer.error();
    plan.optimizer = *optimizer;
  }
  take(plan.optimizer.learning_rate, flags.learning_rate);
  take(plan.optimizer.weight_decay, flags.weight_decay);
  if (flags.augment) {
    auto augment = parse_augment(*flags.augment);
    if (!augment) return augment.error();
    plan.augment = *augment;
  }
  if (flags.init && flags.init->empty())
    return Error{"--init: the path is empty; give a safetensors file, or leave the flag out"};
  take(plan.init_from, flags.init);
  if (!flags.data) return {};
  if (auto* fashion = std::get_if<plan::FashionMnist>(&plan.data)) {
    fashion->directory = *flags.data;
  } else if (auto* table = std::get_if<plan::Csv>(&plan.data)) {
    table->train = *flags.data;
  } else if (auto* writing = std::get_if<plan::TextCorpus>(&plan.data)) {
    writing->file = *flags.data;
  } else {
    return Error{"--data: this scenario makes its own data; leave the flag out"};
  }
  return {};
}

Status apply_policies(const Flags& flags, Plan& plan) {
  if (flags.prefetch && flags.no_prefetch)
    return Error{"--prefetch and --no-prefetch contradict each other; give one"};
  if (flags.prefetch) plan.prefetch = true;
  if (flags.no_prefetch) plan.prefetch = false;
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
  return {};
}

}  // namespace

void add_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  add_training_flags(app, flags, plan);
  add_actor_flags(app, flags, plan);
  add_trouble_flags(app, flags);
  add_simulation_flags(app, flags, plan);
  add_pipeline_flags(app, flags.pipeline, plan);
  add_cluster_flags(app, flags.cluster);
  add_search_flags(app, flags);
  add_output_flags(app, flags);
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
  take(plan.device, flags.device);
  if (auto status = apply_training(flags, plan); !status) return status;
  if (auto status = apply_policies(flags, plan); !status) return status;
  if (auto status = apply_world(flags, plan); !status) return status;
  if (auto status = apply_pipeline(flags.pipeline, flags.workers, plan); !status) return status;
  const bool counted = flags.workers || plan.workers != workers_before;
  if (auto status = apply_trouble(flags, counted, plan); !status) return status;
  return validate(plan);
}

}  // namespace leeway
