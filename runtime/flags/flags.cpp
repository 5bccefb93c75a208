#include "runtime/flags/flags.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "plan/fault_queries.hpp"
#include "plan/settings.hpp"
#include "policies/automatic_plan.hpp"
#include "runtime/flags/compress_text.hpp"
#include "runtime/flags/delay_text.hpp"
#include "runtime/flags/optimizer_text.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/page.hpp"
#include "runtime/flags/split_text.hpp"
#include "runtime/flags/values.hpp"
#include "sim/world.hpp"

namespace leeway {
namespace {

/// Adds the options of one group. Names and help of the plan's settings come from the schema.
class Group {
 public:
  Group(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}

  template <class Target>
  CLI::Option* add(const std::string& flag, Target& target, const std::string& help,
                   const std::string& allowed = "") {
    return add_value(app_, flag, target, help, allowed)->group(name_);
  }
  /// Help shows `planned`, the value without the flag.
  template <class Target>
  void add_with_default(const std::string& flag, Target& target, const std::string& help,
                        const std::string& planned) {
    add(flag, target, help)->default_str(planned);
  }
  template <class Target, class Value>
  void setting(std::string_view key, Target& target, const Value& planned) {
    const plan::Setting& found = plan::setting(key);
    add(found.flag, target, plan::help_of_flag(found), found.range)->default_str(concat(planned));
  }
  /// For a flag that may be given several times.
  void list_setting(std::string_view key, std::vector<std::string>& target) {
    const plan::Setting& found = plan::setting(key);
    add(found.flag, target, plan::help_of_flag(found));
  }
  void add_flag(const std::string& flag, bool& target, const std::string& help) {
    add_switch(app_, flag, target, help)->group(name_);
  }

 private:
  CLI::App& app_;
  std::string name_;
};

void add_training_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group training(app, "Training");
  training.setting("stop.epochs", flags.epochs, plan.stop.epochs);
  training.setting("batch", flags.batch, plan.batch);
  training.setting("micro_batches", flags.micro_batches, plan.micro_batches);
  training.setting("optimizer", flags.optimizer, text_of(plan.optimizer));
  training.setting("optimizer.learning_rate", flags.learning_rate, plan.optimizer.learning_rate);
  training.setting("optimizer.weight_decay", flags.weight_decay, plan.optimizer.weight_decay);
  training.add_flag("--no-decay-on-biases", flags.no_decay_on_biases,
                    plan::help_of_flag(plan::setting("optimizer.no_decay_on_biases")));
  training.add_flag("--eight-bit-state", flags.eight_bit_state,
                    plan::help_of_flag(plan::setting("optimizer.eight_bit_state")));
  training.add_flag("--whole-steps", flags.whole_steps,
                    plan::help_of_flag(plan::setting("optimizer.whole_steps")));
  training.setting("optimizer.clip_norm", flags.clip_norm, plan.optimizer.clip_norm);
  training.setting("optimizer.clip_value", flags.clip_value, plan.optimizer.clip_value);
  training.setting("local_steps.count", flags.local_steps, plan.local_steps.count);
  training.setting("local_steps.outer", flags.outer_optimizer, text_of(plan.local_steps.outer));
  training.setting("local_steps.outer.learning_rate", flags.outer_rate,
                   plan.local_steps.outer.learning_rate);
  training.setting("local_steps.merge", flags.merge, text_of(plan.local_steps.merge));
  training.setting("lr_schedule", flags.lr_schedule, text_of(plan.lr_schedule));
  training.setting("lr_schedule.warmup", flags.warmup, plan.lr_schedule.warmup);
  training.setting("lr_schedule.warmup_start", flags.warmup_start, plan.lr_schedule.warmup_start);
  training.setting("evaluate_every", flags.evaluate_every, plan.evaluate_every);
  training.setting("stop.iterations", flags.iterations, plan.stop.iterations);
  training.setting("stop.seconds", flags.seconds, plan.stop.seconds);
  training.setting("stop.accuracy", flags.accuracy, plan.stop.accuracy);
  training.setting("augment", flags.augment, text_of(plan.augment));
  training.setting("init_from", flags.init, plan.init_from);
  training.list_setting("fine_tuning.init_map", flags.init_map);
  training.add_flag("--init-partial", flags.init_partial,
                    plan::help_of_flag(plan::setting("fine_tuning.partial")));
  training.setting("precision", flags.precision, plan.precision);
  training.setting("loss_scale", flags.loss_scale, plan.loss_scale);
  training.setting("fine_tuning.freeze", flags.freeze, plan.fine_tuning.freeze);
  training.setting("seed", flags.seed, plan.seed);
}

void add_data_flags(CLI::App& app, DataFlags& flags, const Plan& plan) {
  Group data(app, "Data");
  const auto* const planned = std::get_if<plan::Csv>(&plan.data);
  const plan::Csv csv = planned ? *planned : plan::Csv{};
  data.setting("data", flags.path, data_path(plan.data));
  data.setting("data.csv.label", flags.label, csv.label);
  data.add_flag("--no-header", flags.no_header,
                "A CSV file has no header line; its columns are numbered from 1");
  data.setting("data.csv.separator", flags.separator, csv.separator);
  data.setting("data.csv.missing", flags.missing, name_of(csv.missing));
  data.setting("data.csv.text_columns", flags.text_columns, join(csv.text_columns, ","));
}

void add_actor_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.setting("workers", flags.workers, plan.workers);
  actors.setting("shards", flags.shards, plan.shards);
  actors.setting("replicas", flags.replicas, plan.replicas);
  actors.setting("consistency", flags.staleness, text_of(plan.consistency));
  actors.setting("aggregate", flags.aggregate, text_of(plan.aggregate));
  actors.setting("delay_policy", flags.delay_policy, text_of(plan.delay_policy));
  actors.setting("balance", flags.balance, text_of(plan.balance));
  actors.setting("compress", flags.compress, text_of(plan.compress));
  actors.add_flag("--prefetch", flags.prefetch, plan::help_of_flag(plan::setting("prefetch")));
  actors.add_flag("--no-prefetch", flags.no_prefetch, "Pull when the weights are needed");
  actors.setting("split_data", flags.split_data, text_of(plan.split_data));
  actors.setting("participation", flags.participation, plan.participation);
  actors.setting("lease_size", flags.lease_size, plan.lease_size);
  actors.setting("device", flags.device, plan.device);
  actors.list_setting("stragglers", flags.slow);
  actors.list_setting("faults", flags.faults);
}

void add_simulation_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group actors(app, "Actors");
  actors.add_flag("--simulate", flags.simulate,
                  "Run in virtual time, with each worker and shard on a separate node");
  actors.add("--world", flags.world,
             concat("Simulate in this world: comma-separated name=value, where name is one of ",
                    join(sim::world_settings(), ", "),
                    "; for example latency=200us,link=1; a leading @world.toml reads a file that "
                    "--calibrate wrote"));
  actors.add("--calibrate", flags.calibrate,
             "Measure this machine with the scenario's model, write its world to this file, and "
             "run nothing");
  actors.add_flag("--check-determinism", flags.check_determinism,
                  "In a simulation: run it twice more, and compare these runs step by step");
  actors.setting("host.simulated.cost_only", flags.gradients,
                 plan.simulated && plan.simulated->cost_only ? "none" : "real");
}

void add_search_flags(CLI::App& app, Flags& flags) {
  Group search(app, "Search");
  search.add("--fuzz", flags.fuzz,
             "Simulate random runs of these seeds, such as 1..2000, with faults and all checkers; "
             "a failing run is minimised and written as a plan file to --out");
  search.add_flag(
      "--crash-atlas", flags.crash_atlas,
      "Instead of a run: lose each process of a simulated run with standby shards after "
      "each of its messages");
  search.add_with_default("--second", flags.second,
                          "With --crash-atlas: further runs, in which a second process is lost",
                          "2000");
  search.add_with_default("--threads", flags.threads,
                          "Threads of --fuzz and --crash-atlas; 0: one per core", "0");
  search.add_flag("--clusters", flags.clusters,
                  "With --fuzz: only runs on simulated nodes, instead of one in four");
  search.add("--from", flags.from, "Start from the plan of this file instead of the scenario's");
}

void add_checkpoint_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  Group group(app, "Checkpoints");
  group.setting("checkpoints", flags.checkpoint_every, text_of(plan.checkpoints.every));
  group.setting("checkpoints.keep", flags.keep, plan.checkpoints.keep);
  group.setting("checkpoints.directory", flags.checkpoint_dir, plan.checkpoints.directory);
  group.add(
      "--resume", flags.resume,
      "Continue a run from its latest checkpoint, with its plan and the flags given here: the "
      "run's folder, the folder of one of its checkpoints, or latest");
}

void add_output_flags(CLI::App& app, Flags& flags) {
  Group output(app, "Output");
  output.add_with_default("--out", flags.out, "Run folder", "runs/NAME-DATE-TIME");
  output.add_flag("--no-out", flags.no_out, "Write no run folder");
  output.add("--serve", flags.serve,
             "Serve the page of the run at this port, or HOST:PORT; 0: any free port");
  output.add("--serve-token", flags.serve_token, kServeTokenHelp);
  output.add("--metrics", flags.metrics,
             "Serve metrics for Prometheus at this port, or HOST:PORT; 0: any free port");
  output.add_flag("--tensorboard", flags.tensorboard,
                  "Write metrics for TensorBoard into the run folder");
  output.add_flag("--trace", flags.trace,
                  "Write every event into the run folder, for `leeway view`, `blame`, `what-if`, "
                  "`trace` and `events`");
  output.add_flag("--trace-json", flags.trace_json,
                  "Write every event as a JSON line, for programs that read them during the run");
  output.add_flag("--trace-messages", flags.trace_messages,
                  "Write every message between actors into the run folder, for `leeway messages`");
  output.add_flag("--profile", flags.profile, "Show the time of each layer");
  output.add_flag("--strict", flags.strict,
                  "Fail if a straggler or fault of the plan has no effect");
  output.add_flag("--quiet", flags.quiet, "No progress, no summary");
  output.add_flag("--plan", flags.print_plan, "Print the plan as JSON, and run nothing");
  output.add_flag("--describe-json", flags.describe_json,
                  "Print name, summary, description and plan as JSON");
}

template <class T>
void take(T& target, const std::optional<T>& flag) {
  if (flag) target = *flag;
}

bool is_missing_worker(Address actor, const Plan& plan) {
  return actor.kind == RoleKind::worker && actor.index >= plan.workers;
}

/// Whether the actor of the fault, or one of its peers, is a worker that the plan lacks.
bool names_missing_worker(const plan::Fault& fault, const Plan& plan) {
  const auto has_missing_peer = [&](const auto& kind) {
    if constexpr (requires { kind.peer; }) return is_missing_worker(kind.peer, plan);
    if constexpr (requires { kind.with; })
      return std::ranges::any_of(kind.with,
                                 [&](Address with) { return is_missing_worker(with, plan); });
    return false;
  };
  return is_missing_worker(fault.actor, plan) || std::visit(has_missing_peer, fault.kind);
}

/// `new_workers`: flags changed the number of workers. The scenario's faults and stragglers of
/// workers that no longer exist are removed; those of flags are validated with the plan.
Status apply_stragglers_and_faults(const Flags& flags, bool new_workers, Plan& plan) {
  if (new_workers) {
    std::erase_if(plan.faults,
                  [&](const auto& fault) { return names_missing_worker(fault, plan); });
    plan::remove_workers(plan.stragglers,
                         [&](std::uint32_t worker) { return worker >= plan.workers; });
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
  if (sim::has_agents(plan) && flags.cluster.place) plan.simulated->place = *flags.cluster.place;
  if (!flags.gradients) return {};
  if (*flags.gradients != "real" && *flags.gradients != "none")
    return Error{concat("--gradients: \"", *flags.gradients, "\" is not known; give real or none")};
  const bool none = *flags.gradients == "none";
  if (none && !plan.simulated)
    return Error{"--gradients none requires a simulation; add --simulate, or leave it out"};
  if (plan.simulated) plan.simulated->cost_only = none;
  return {};
}

Status apply_training(const Flags& flags, Plan& plan) {
  if (flags.optimizer) {
    auto optimizer = parse_optimizer(*flags.optimizer);
    if (!optimizer) return optimizer.error();
    plan.optimizer.learning_rate = optimizer->learning_rate;
    plan.optimizer.weight_decay = optimizer->weight_decay;
    plan.optimizer.kind = optimizer->kind;
  }
  take(plan.local_steps.count, flags.local_steps);
  if (flags.outer_optimizer) {
    auto outer = parse_outer_optimizer(*flags.outer_optimizer);
    if (!outer) return outer.error();
    plan.local_steps.outer = *outer;
  } else if (flags.local_steps == 0u && !flags.outer_rate && !flags.merge) {
    plan.local_steps = {};
  }
  if (flags.merge) {
    const auto merge = parse_merge(*flags.merge);
    if (!merge) return merge.error();
    plan.local_steps.merge = *merge;
  }
  take(plan.local_steps.outer.learning_rate, flags.outer_rate);
  if (flags.lr_schedule) {
    auto kind = parse_lr_schedule(*flags.lr_schedule);
    if (!kind) return kind.error();
    if (kind->index() != plan.lr_schedule.kind.index()) plan.lr_schedule.kind = *kind;
  }
  if (flags.no_decay_on_biases) plan.optimizer.no_decay_on_biases = true;
  if (flags.eight_bit_state) plan.optimizer.eight_bit_state = true;
  if (flags.whole_steps) plan.optimizer.whole_steps = true;
  take(plan.optimizer.clip_norm, flags.clip_norm);
  take(plan.optimizer.clip_value, flags.clip_value);
  take(plan.optimizer.learning_rate, flags.learning_rate);
  take(plan.optimizer.weight_decay, flags.weight_decay);
  if (flags.augment) {
    auto augment = parse_augment(*flags.augment);
    if (!augment) return augment.error();
    plan.augment = *augment;
  }
  take(plan.init_from, flags.init);
  if (!flags.init_map.empty()) plan.fine_tuning.init_map = join(flags.init_map, ",");
  if (flags.init_partial) plan.fine_tuning.partial = true;
  take(plan.precision, flags.precision);
  take(plan.loss_scale, flags.loss_scale);
  take(plan.fine_tuning.freeze, flags.freeze);
  if (plan.fine_tuning.freeze == "none") plan.fine_tuning.freeze.clear();
  return apply_data(flags.data, plan.data);
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
  if (flags.aggregate) {
    auto aggregate = parse_aggregate(*flags.aggregate);
    if (!aggregate) return aggregate.error();
    plan.aggregate = *aggregate;
  }
  if (flags.delay_policy) {
    auto policy = parse_delay_policy(*flags.delay_policy);
    if (!policy) return policy.error();
    plan.delay_policy = *policy;
  }
  if (flags.split_data) {
    auto split = parse_split_data(*flags.split_data);
    if (!split) return split.error();
    plan.split_data = *split;
  }
  take(plan.participation, flags.participation);
  if (flags.compress) {
    auto compression = parse_compression(*flags.compress, plan.compress);
    if (!compression) return compression.error();
    plan.compress = *compression;
  }
  GivenSettings given;
  if (flags.balance) {
    auto balance = parse_balance(*flags.balance);
    if (!balance) return balance.error();
    given.balance = plan.balance = *balance;
  }
  if (flags.delay_policy) given.delay_policy = plan.delay_policy;
  return check_implied(given, plan);
}

}  // namespace

void add_flags(CLI::App& app, Flags& flags, const Plan& plan) {
  add_training_flags(app, flags, plan);
  add_data_flags(app, flags.data, plan);
  add_actor_flags(app, flags, plan);
  add_simulation_flags(app, flags, plan);
  add_pipeline_flags(app, flags.pipeline, plan);
  add_cluster_flags(app, flags.cluster);
  add_search_flags(app, flags);
  add_checkpoint_flags(app, flags, plan);
  add_output_flags(app, flags);
}

Status apply(const Flags& flags, Plan& plan) {
  const std::uint32_t workers_before = plan.workers;
  take(plan.workers, flags.workers);
  take(plan.shards, flags.shards);
  take(plan.replicas, flags.replicas);
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
  take(plan.lr_schedule.warmup_start, flags.warmup_start);
  if (flags.warmup == 0.0 && !flags.warmup_start) plan.lr_schedule.warmup_start = 0;
  take(plan.device, flags.device);
  take(plan.checkpoints.keep, flags.keep);
  take(plan.checkpoints.directory, flags.checkpoint_dir);
  if (flags.checkpoint_every) {
    const auto every = parse_checkpoint_interval(*flags.checkpoint_every);
    if (!every) return every.error();
    plan.checkpoints.every = *every;
  }
  if (auto status = apply_training(flags, plan); !status) return status;
  if (auto status = apply_policies(flags, plan); !status) return status;
  if (auto status = apply_world(flags, plan); !status) return status;
  if (auto status = apply_pipeline(flags.pipeline, flags.workers, plan); !status) return status;
  const bool new_workers = flags.workers || plan.workers != workers_before;
  if (auto status = apply_stragglers_and_faults(flags, new_workers, plan); !status) return status;
  return validate(plan);
}

}  // namespace leeway
