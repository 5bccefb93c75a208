#include "runtime/flags/flags.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/values.hpp"
#include "sim/world.hpp"

namespace leeway {
namespace {

/// Adds options of one group. Those of the plan's settings are named and explained by the schema.
class Group {
 public:
  Group(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

  template <class Target>
  CLI::Option* add(const std::string& flag, Target& target, const std::string& help) {
    return app_.add_option(flag, target, help)->group(name_);
  }
  /// Help shows `planned`, which holds if the flag is not given.
  template <class Target, class Value>
  void add(const std::string& flag, Target& target, const std::string& help, const Value& planned) {
    add(flag, target, help)->default_str(concat(planned));
  }
  template <class Target, class Value>
  void setting(std::string_view key, Target& target, const Value& planned) {
    const plan::Setting& found = plan::setting(key);
    add(found.flag, target, plan::help_of_flag(found), planned);
  }
  /// One that may be given several times.
  void list_setting(std::string_view key, std::vector<std::string>& target) {
    const plan::Setting& found = plan::setting(key);
    add(found.flag, target, plan::help_of_flag(found))->allow_extra_args(false);
  }
  void add_flag(const std::string& flag, bool& target, const std::string& help) {
    app_.add_flag(flag, target, help)->group(name_);
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
  training.setting("stop.epochs", flags.epochs, plan.stop.epochs);
  training.setting("batch", flags.batch, plan.batch);
  training.setting("micro_batches", flags.micro_batches, plan.micro_batches);
  training.setting("optimizer", flags.optimizer, text_of(plan.optimizer));
  training.setting("optimizer.learning_rate", flags.learning_rate, plan.optimizer.learning_rate);
  training.setting("optimizer.weight_decay", flags.weight_decay, plan.optimizer.weight_decay);
  training.setting("lr_schedule.warmup", flags.warmup, plan.lr_schedule.warmup);
  training.setting("evaluate_every", flags.evaluate_every, plan.evaluate_every);
  training.setting("stop.iterations", flags.iterations, plan.stop.iterations);
  training.setting("stop.seconds", flags.seconds, plan.stop.seconds);
  training.setting("stop.accuracy", flags.accuracy, plan.stop.accuracy);
  training.setting("data", flags.data, data_path(plan.data));
  training.setting("augment", flags.augment, text_of(plan.augment));
  training.setting("init_from", flags.init, plan.init_from);
  training.setting("seed", flags.seed, plan.seed);
}

void add_actor_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.setting("workers", flags.workers, plan.workers);
  actors.setting("shards", flags.shards, plan.shards);
  actors.setting("consistency", flags.staleness, text_of(plan.consistency));
  actors.setting("balance", flags.balance, text_of(plan.balance));
  actors.add_flag("--prefetch", flags.prefetch, plan::help_of_flag(plan::setting("prefetch")));
  actors.add_flag("--no-prefetch", flags.no_prefetch, "Pull when the weights are needed");
  actors.setting("lease_size", flags.lease_size, plan.lease_size);
  actors.setting("device", flags.device, plan.device);
  actors.list_setting("stragglers", flags.slow);
  actors.list_setting("faults", flags.faults);
}

void add_simulation_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.add_flag("--simulate", flags.simulate,
                  "Run in virtual time, every worker and shard on a node of its own");
  actors.add("--world", flags.world,
             concat("Simulate in this world: name=value with commas between, of ",
                    join(sim::world_settings(), ", "),
                    "; for example latency=200us,link=1; @world.toml in front reads what "
                    "--calibrate has written"));
  actors.add("--calibrate", flags.calibrate,
             "Measure this machine with the scenario's model, write the world that it is into "
             "this file, and run nothing");
  actors.add_flag("--check-determinism", flags.check_determinism,
                  "In a simulation: run it twice more first, and compare them step by step");
  actors.setting("host.simulated.cost_only", flags.gradients,
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
  take(plan.lease_size, flags.lease_size);
  take(plan.seed, flags.seed);
  take(plan.stop.iterations, flags.iterations);
  take(plan.stop.epochs, flags.epochs);
  take(plan.stop.seconds, flags.seconds);
  take(plan.stop.accuracy, flags.accuracy);
  take(plan.evaluate_every, flags.evaluate_every);
  take(plan.lr_schedule.warmup, flags.warmup);
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
