#pragma once
// Flags: the settings of a plan, and how a run shows itself, as a scenario program's command line
// has them.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "runtime/flags/cluster.hpp"
#include "runtime/flags/pipeline.hpp"

namespace leeway {

/// What was given on the command line, before it is put into the plan.
struct Flags {
  std::optional<std::uint32_t> workers, shards, batch, micro_batches, lease_size;
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

/// Adds all of them, in groups. Help shows what `plan` has where a flag is not given.
void add_flags(CLI::App& app, Flags& flags, const Plan& plan);

/// Puts them into the plan, and checks what comes of it. Errors name the flag or the setting, and
/// what to give.
Status apply(const Flags& flags, Plan& plan);

}  // namespace leeway
