// `leeway schedule`: shows the operations of each pipeline stage over time.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/pipeline.hpp"
#include "core/files.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "monitoring/pipeline_picture.hpp"
#include "policies/pipeline/check.hpp"
#include "runtime/flags/option.hpp"

namespace leeway::cli {
namespace {

using namespace pipeline;

constexpr std::int64_t kMaxCost = 1'000'000'000;

int list_schedules() {
  std::size_t width = 0;
  for (const auto& entry : catalogue()) width = std::max(width, entry.name.size());
  for (const auto& entry : catalogue()) {
    const std::string margin(width + 2, ' ');
    std::cout << entry.name << margin.substr(entry.name.size()) << entry.description << '\n'
              << margin << '(' << entry.paper << ")\n";
  }
  std::cout << "\nleeway schedule 1f1b --stages 4 --micro-batches 8   shows one\n";
  return kExitOk;
}

Status check_costs(const ScheduleOptions& options) {
  const std::pair<const char*, std::int64_t> costs[] = {
      {"--forward", options.costs.forward},
      {"--backward-input", options.costs.backward_input},
      {"--backward-weight", options.costs.backward_weights},
      {"--update", options.costs.update},
      {"--communication", options.communication}};
  for (const auto& [flag, cost] : costs)
    if (cost < 0 || cost > kMaxCost)
      return Error{concat(flag, ": ", cost, " is not allowed; give 0 to ", kMaxCost)};
  if (options.costs.of_micro_batch() == 0)
    return Error{"--forward, --backward-input and --backward-weight are all 0; give one of them 1"};
  return {};
}

Spec spec_of(const ScheduleOptions& options, const pipeline::Schedule& schedule) {
  Spec spec{.schedule = current_name(options.name),
            .stages = options.stages,
            .micro_batches = options.micro_batches};
  spec.chunks = options.chunks.value_or(usual_chunks(options.name));
  spec.updates = options.updates.value_or(schedule.asynchronous() ? 3 : 1);
  return spec;
}

/// The width of the terminal, else COLUMNS, else 100.
int columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* given = std::getenv("COLUMNS");
  const int columns = given ? std::atoi(given) : 0;
  return columns > 0 ? columns : 100;
}

bool wants_colours() {
  return ::isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR");
}

std::string text_of(const Share& share) {
  const double value = static_cast<double>(share.part) / static_cast<double>(share.whole);
  return percent(value);
}

void print_figures(const Spec& spec, const ScheduleOptions& options,
                   const pipeline::Schedule& schedule, const Timeline& timeline,
                   const CheckedTable& checked) {
  const auto theory = schedule.bubble(spec, options.costs);
  std::cout << "\nTime " << timeline.length << ", bubble " << text_of(timeline.bubble())
            << " of it; in theory ";
  if (theory)
    std::cout << theory->part << '/' << theory->whole << " = " << text_of(*theory)
              << (options.communication > 0 || options.costs.update > 0
                      ? ", without the time of messages and updates"
                      : "");
  else
    std::cout << "no closed form for these sizes";
  if (schedule.asynchronous()) std::cout << "; less with more updates";
  std::cout << ".\n\nstage  activations  versions   age of gradients  idle\n";
  for (int stage = 0; stage < spec.stages; ++stage) {
    const auto index = static_cast<std::size_t>(stage);
    const StageUse& use = checked.stages[index];
    std::cout << std::setw(5) << stage << std::setw(13) << use.activations << std::setw(10)
              << use.versions << std::setw(19) << use.version_lag << std::setw(6)
              << timeline.length - timeline.busy[index] << '\n';
  }
  std::cout << "\nThe most activations (of micro-batches" << (spec.chunks > 1 ? " and chunks" : "")
            << ") and versions of the weights that a stage keeps; age in updates.\n"
            << "Channels between stages need room for " << checked.channel_bound
            << (checked.channel_bound == 1 ? " message" : " messages")
            << " to avoid a deadlock, and for " << std::max(1, timeline.most_in_channel)
            << " so that no stage waits for room.\n";
}

int write_svg(const std::string& path, const Table& table, const Timeline& timeline,
              const std::string& title) {
  if (const Status written =
          write_durably(disk(), path, pipeline_svg(table, timeline, {.title = title}));
      !written)
    return refuse(Error{concat("--svg: ", written.error().text, "; check the folder")},
                  kExitFailed);
  std::cout << "Picture: " << path << '\n';
  return kExitOk;
}

}  // namespace

CLI::App* add_schedule(CLI::App& app, ScheduleOptions& options) {
  auto* command = app.add_subcommand(
      "schedule", "Show the operations of pipeline stages over time, and their costs");
  add_value(*command, "NAME", options.name, "Name of the schedule; without it, lists them");
  add_value(*command, "--stages", options.stages, "Stages of the pipeline",
            concat("1 to ", kMaxStages))
      ->capture_default_str();
  add_value(*command, "--micro-batches", options.micro_batches, "Micro-batches per update",
            "1 or more")
      ->capture_default_str();
  add_value(*command, "--chunks", options.chunks,
            "Chunks of the model per stage, for schedules with several [2]",
            concat("1 to ", limits::kMaxChunks));
  add_value(*command, "--updates", options.updates,
            "Updates to show [1; 3 for schedules without flushes]", "1 or more");
  add_value(*command, "--forward", options.costs.forward,
            "Time of the forward of a micro-batch through one chunk")
      ->capture_default_str();
  add_value(*command, "--backward-input", options.costs.backward_input,
            "Time of the gradient of a chunk's inputs")
      ->capture_default_str();
  add_value(*command, "--backward-weight", options.costs.backward_weights,
            "Time of the gradients of a chunk's weights")
      ->capture_default_str();
  add_value(*command, "--update", options.costs.update, "Time of an update")->capture_default_str();
  add_value(*command, "--communication", options.communication,
            "Time of a message between two stages")
      ->capture_default_str();
  add_value(*command, "--svg", options.svg, "File for the picture");
  command->parse_complete_callback([command, &options] {
    for (const auto* option : command->get_options())
      if (option->count() > 0 && !option->get_positional())
        options.flags.push_back(option->get_name());
  });
  return command;
}

int schedule(const ScheduleOptions& options) {
  if (options.name.empty() && !options.flags.empty())
    return refuse(Error{concat(options.flags.front(),
                               " needs a schedule; give its name, as in leeway schedule 1f1b")});
  if (options.name.empty()) return list_schedules();
  const auto found = find_schedule(options.name);
  if (!found) return refuse(found.error());
  if (const auto note = renaming_note(options.name); !note.empty())
    std::cerr << "leeway: " << note << '\n';
  const Spec spec = spec_of(options, **found);
  if (const auto good = check_costs(options); !good) return refuse(good.error());
  const auto table = make_table(spec);
  if (!table) return refuse(table.error());
  const auto checked = check(*table);
  if (!checked) return refuse(checked.error(), kExitFailed);
  const auto timeline =
      play(*table, Costs::equal(table->model_chunks(), options.costs, options.communication));
  if (!timeline) return refuse(timeline.error(), kExitFailed);
  const std::string title =
      concat(spec.schedule, ": ", spec.stages, spec.stages == 1 ? " stage, " : " stages, ",
             spec.chunks > 1 ? concat(spec.chunks, " chunks each, ") : "", spec.micro_batches,
             spec.micro_batches == 1 ? " micro-batch" : " micro-batches",
             (*found)->asynchronous() || spec.updates > 1
                 ? concat(" per update, ", spec.updates, spec.updates == 1 ? " update" : " updates")
                 : "");
  std::cout << title << "\n\n";
  const bool drawn = count_ops(*table) <= kMaxPictureOps;
  if (drawn)
    std::cout << pipeline_text(*table, *timeline,
                               {.columns = columns(), .colours = wants_colours(), .title = {}})
              << '\n'
              << pipeline_legend(*table) << '\n';
  else
    std::cout << "The table has " << grouped(count_ops(*table)) << " operations, more than the "
              << grouped(kMaxPictureOps) << " of a picture.\n";
  print_figures(spec, options, **found, *timeline, *checked);
  if (options.svg.empty()) return kExitOk;
  if (!drawn)
    return refuse(Error{concat("--svg: ", count_ops(*table),
                               " operations are too many to draw; "
                               "give fewer --micro-batches or --stages")});
  return write_svg(options.svg, *table, *timeline, title);
}

}  // namespace leeway::cli
