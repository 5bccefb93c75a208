#pragma once
// The subcommands `leeway schedule` and `leeway partition`: their flags, and what they do.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace CLI {
class App;
}

namespace leeway::cli {

struct ScheduleOptions {
  std::string name;  // empty: list them all
  int stages = 4;
  int micro_batches = 8;
  std::optional<int> chunks, updates;
  pipeline::OpCosts costs;
  std::int64_t communication = 0;
  std::string svg;                 // file; empty: none
  std::vector<std::string> flags;  // those that were given
};

CLI::App* add_schedule(CLI::App& app, ScheduleOptions& options);

/// Shows a schedule's table as a picture, with what the checker found. Returns the exit code.
int schedule(const ScheduleOptions& options);

/// What is not given is as the plan has it, where that has stages.
struct PartitionOptions {
  std::string target;  // a plan file, a scenario or a model
  std::optional<int> stages, micro_batches, chunks;
  std::optional<std::string> schedule, split;
  std::optional<std::uint32_t> batch;
  std::string speeds, memory, world;  // as given; empty: not
  bool measure = false;
};

CLI::App* add_partition(CLI::App& app, PartitionOptions& options);

/// Shows how a model is best cut into stages, and why. Returns the exit code.
int partition(const PartitionOptions& options);

}  // namespace leeway::cli
