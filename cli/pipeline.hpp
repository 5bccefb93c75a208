#pragma once
// The subcommands `leeway schedule` and `leeway partition`, with their flags.
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
  std::string name;  // empty to list all schedules
  int stages = 4;
  int micro_batches = 8;
  std::optional<int> chunks, updates;
  pipeline::OpCosts costs;
  std::int64_t communication = 0;
  std::string svg;                 // file for a picture, or empty
  std::vector<std::string> flags;  // the given flags
};

CLI::App* add_schedule(CLI::App& app, ScheduleOptions& options);

/// Prints a schedule's table as a picture, and its figures. Returns the exit code.
int schedule(const ScheduleOptions& options);

/// Missing options come from the plan if it has stages.
struct PartitionOptions {
  std::string target;  // a plan file, a scenario or a model
  std::optional<int> stages, micro_batches, chunks;
  std::optional<std::string> schedule, split;
  std::optional<std::uint32_t> batch;
  std::string speeds, memory, world;  // unparsed; empty if not given
  bool measure = false;
};

CLI::App* add_partition(CLI::App& app, PartitionOptions& options);

/// Prints the best split of a model and its bottleneck. Returns the exit code.
int partition(const PartitionOptions& options);

}  // namespace leeway::cli
