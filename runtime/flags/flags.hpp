#pragma once
// Flags: the command line of a scenario program: settings of the plan, and options of the output.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "runtime/flags/cluster.hpp"
#include "runtime/flags/data.hpp"
#include "runtime/flags/pipeline.hpp"

namespace leeway {

/// The flags as given, before they are applied to the plan.
struct Flags {
  std::optional<std::uint32_t> workers, shards, replicas, batch, micro_batches, lease_size,
      local_steps;
  std::optional<std::uint64_t> seed, iterations;
  std::optional<double> epochs, seconds, accuracy, learning_rate, weight_decay, clip_norm,
      clip_value, warmup, warmup_start, evaluate_every, outer_rate, participation, loss_scale;
  std::optional<std::string> staleness, aggregate, delay_policy, compress, balance, split_data,
      optimizer, outer_optimizer, merge, lr_schedule, augment, init, freeze, precision, device;
  std::optional<std::string> checkpoint_every, checkpoint_dir, resume;
  std::optional<std::uint32_t> keep;
  std::vector<std::string> slow, faults, init_map;
  bool init_partial = false;
  bool no_decay_on_biases = false;
  bool eight_bit_state = false;
  bool whole_steps = false;
  bool prefetch = false;
  bool no_prefetch = false;
  bool print_plan = false;
  bool describe_json = false;
  std::string out;
  bool no_out = false;
  bool quiet = false;
  std::optional<std::string> serve, serve_token, metrics;
  bool tensorboard = false;
  bool trace = false;
  bool trace_json = false;
  bool trace_messages = false;
  bool profile = false;
  bool strict = false;
  bool simulate = false;
  std::optional<std::string> world, gradients, fuzz, from, calibrate;
  std::optional<unsigned> threads;
  std::optional<std::uint64_t> second;
  bool check_determinism = false;
  bool clusters = false, crash_atlas = false;
  DataFlags data;
  PipelineFlags pipeline;
  ClusterFlags cluster;
};

/// Adds all flags, in groups. Help shows the values of `plan` as defaults.
void add_flags(CLI::App& app, Flags& flags, const Plan& plan);

/// Applies the flags to the plan and validates the plan. Errors name the flag or the setting, and
/// an allowed value.
Status apply(const Flags& flags, Plan& plan);

}  // namespace leeway
