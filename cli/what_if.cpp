// `leeway what-if`: simulates a run with its own durations, under other settings.
#include "cli/what_if.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "core/text.hpp"
#include "kv/table.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/text_table.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/values.hpp"
#include "runtime/tools/what_if.hpp"

namespace leeway::cli {
namespace {

/// A difference between the measured and the simulated run that the user should know.
constexpr double kLargeError = 0.1;

/// The settings that were changed, as flags; empty: none.
std::string name_of(const WhatIfCommand& command) {
  std::string name;
  const auto add = [&](const auto&... parts) { name += concat(name.empty() ? "" : " ", parts...); };
  if (!command.staleness.empty()) add("--staleness ", command.staleness);
  if (!command.balance.empty()) add("--balance ", command.balance);
  if (!command.schedule.empty()) add("--schedule ", command.schedule);
  for (const std::string& worker : command.without_stragglers) add("--without-straggler ", worker);
  if (command.workers) add("--workers ", *command.workers);
  if (command.shards) add("--shards ", *command.shards);
  if (command.link) add("--link ", *command.link);
  if (command.prefetch) add("--prefetch");
  return name;
}

Expected<WhatIfOptions> options_of(const WhatIfCommand& command) {
  if (command.folder.empty() == command.import.empty())
    return Error{concat("what-if: give ", command.folder.empty() ? "" : "either ",
                        "the folder of a run or --import FILE",
                        command.folder.empty() ? "" : ", not both")};
  if (name_of(command).empty())
    return Error{concat("what-if: no setting is changed; give --staleness, --balance, --schedule",
                        command.import.empty()
                            ? ", --without-straggler, --workers, --shards, --link or --prefetch"
                            : " or --without-straggler")};
  if (command.link && !(*command.link > 0))
    return Error{concat("--link: ", *command.link, " is not allowed; give Gbit/s above 0")};
  WhatIfOptions options{.folder = command.folder,
                        .import = command.import,
                        .workers = command.workers,
                        .shards = command.shards,
                        .link = command.link,
                        .prefetch = command.prefetch,
                        .gradients = command.gradients};
  if (!command.staleness.empty()) {
    const auto consistency = parse_staleness(command.staleness);
    if (!consistency) return consistency.error();
    options.consistency = *consistency;
  }
  if (!command.balance.empty()) {
    const auto balance = parse_balance(command.balance);
    if (!balance) return balance.error();
    options.balance = *balance;
  }
  if (!command.schedule.empty()) options.schedule = command.schedule;
  for (const std::string& name : command.without_stragglers) {
    const auto address = parse_address(name);
    if (!address || address->kind != RoleKind::worker)
      return Error{concat("--without-straggler: \"", name, "\" is no worker; give worker3")};
    options.without_stragglers.push_back(address->index);
  }
  return options;
}

/// Whether the folder has a run of a store.
bool is_of_store(const std::string& folder) {
  const auto plan = plan_from_file(folder + "/plan.json");
  return plan && !kv::table_keys(plan->model).empty();
}

double ratio(const RunTimes& to, const RunTimes& from) {
  return to.samples_per_second / from.samples_per_second;
}

void print_error(double error) {
  if (std::abs(error) <= kLargeError) return;
  std::cout << "The simulation of the run as it was differs from the measured run by "
            << signed_percent(error)
            << ": workers that share cores, or a busy machine, change durations in ways that a "
               "replay cannot know.\n";
}

/// A trace has steps, and no samples.
void print_trace(const WhatIf& answer, const std::string& changes) {
  const auto step_of = [&](const RunTimes& times) {
    return answer.samples_per_step / times.samples_per_second;
  };
  TextTable table;
  table.add({"", "s/step", "", "waiting"});
  const auto row = [&](const std::string& name, const RunTimes& times,
                       const std::string& compared) {
    table.add({name, fixed(step_of(times), 2), compared, percent(times.waiting)});
  };
  const double error = step_of(answer.as_it_ran) / step_of(answer.measured) - 1;
  const double change = step_of(answer.changed) / step_of(answer.as_it_ran) - 1;
  row("measured", answer.measured, "");
  row("simulated as it ran", answer.as_it_ran, concat(signed_percent(error), " to measured"));
  row("simulated " + changes, answer.changed, concat(signed_percent(change), " to simulated"));
  std::cout << table.text() << '\n';
  if (answer.whole_replicas)
    std::cout << "Each replica is one worker that computes its pipeline's step: a pipeline cannot "
                 "abandon an iteration.\n";
  std::cout << "Messages take no time here: what the measured step takes besides is "
               "communication.\n";
}

void print(const WhatIf& answer, const std::string& changes) {
  if (answer.samples_per_step > 0) return print_trace(answer, changes);
  TextTable table;
  std::vector<std::string> header{"", "seconds", "samples/s", "", "waiting", "parked pulls"};
  if (answer.changed.test_loss) header.emplace_back("test loss");
  table.add(std::move(header));
  const auto row = [&](const std::string& name, const RunTimes& times,
                       const std::string& compared) {
    std::vector<std::string> cells{
        name,
        fixed(times.seconds, 2),
        grouped(static_cast<std::uint64_t>(std::llround(times.samples_per_second))),
        compared,
        percent(times.waiting),
        grouped(times.parked_pulls)};
    if (answer.changed.test_loss)
      cells.push_back(times.test_loss ? fixed(*times.test_loss, 4) : "");
    table.add(std::move(cells));
  };
  const double error = ratio(answer.as_it_ran, answer.measured) - 1;
  const double gain = ratio(answer.changed, answer.as_it_ran) - 1;
  row("measured", answer.measured, "");
  row("simulated as it ran", answer.as_it_ran, concat(signed_percent(error), " to measured"));
  row("simulated " + changes, answer.changed, concat(signed_percent(gain), " to simulated"));
  std::cout << table.text() << '\n'
            << changes << ": waiting would be " << percent(answer.changed.waiting)
            << " of all time, not " << percent(answer.as_it_ran.waiting) << "; samples/s "
            << signed_percent(gain);
  if (answer.changed.test_loss && answer.as_it_ran.test_loss)
    std::cout << "; test loss " << fixed(*answer.changed.test_loss, 4) << ", not "
              << fixed(*answer.as_it_ran.test_loss, 4);
  std::cout << '\n';
  print_error(error);
}

nlohmann::ordered_json json_of(const RunTimes& times) {
  nlohmann::ordered_json json{{"seconds", times.seconds},
                              {"samples_per_second", times.samples_per_second},
                              {"waiting", times.waiting},
                              {"parked_pulls", times.parked_pulls}};
  if (times.test_loss) json["test_loss"] = *times.test_loss;
  return json;
}

}  // namespace

CLI::App* add_what_if(CLI::App& app, WhatIfCommand& command) {
  auto* what_if =
      app.add_subcommand("what-if", "Simulate a run with its own durations, under other settings");
  add_value(*what_if, "RUN", command.folder, "Folder of a run with --trace");
  add_value(*what_if, "--import", command.import,
            "Trace of another training system instead, as for leeway blame; with --staleness, "
            "--balance, --schedule and --without-straggler");
  add_value(*what_if, "--staleness", command.staleness, "Other bound or policy, as for a run");
  add_value(*what_if, "--balance", command.balance, "Other balance: equal or speed");
  add_value(*what_if, "--schedule", command.schedule, "Other schedule of pipelines, such as 2bw");
  add_value(
      *what_if, "--without-straggler", command.without_stragglers,
      "Worker that becomes as fast as the median one, or the median of its stage; of a trace, "
      "worker replica x stages + stage; can be repeated")
      ->allow_extra_args(false);
  add_value(*what_if, "--workers", command.workers,
            "Other number; workers beyond the run's repeat durations of the others", "1 or more");
  add_value(*what_if, "--shards", command.shards, "Other number of shards", "1 or more");
  add_value(*what_if, "--link", command.link,
            "Gbit/s of each node's link [no limit beyond the measured time]", "above 0");
  add_switch(*what_if, "--prefetch", command.prefetch, "Pull the next weights while computing");
  add_switch(*what_if, "--gradients", command.gradients,
             "Compute real gradients, and compare losses; takes as long as the training");
  add_switch(*what_if, "--json", command.json, "Print JSON");
  return what_if;
}

int what_if(const WhatIfCommand& command) {
  const auto options = options_of(command);
  if (command.import.empty() && is_of_store(command.folder))
    return refuse(Error{concat(command.folder,
                               ": the computations of its loops have no model that "
                               "could be simulated; `leeway blame` names the "
                               "causes of its waiting")});
  const auto answer = options ? leeway::what_if(*options) : Expected<WhatIf>(options.error());
  if (!answer) return refuse(answer.error());
  if (command.json) {
    std::cout << nlohmann::ordered_json{{"changes", name_of(command)},
                                        {"measured", json_of(answer->measured)},
                                        {"simulated_as_it_ran", json_of(answer->as_it_ran)},
                                        {"simulated_changed", json_of(answer->changed)},
                                        {"samples_per_step", answer->samples_per_step}}
                     .dump(2)
              << '\n';
  } else {
    print(*answer, name_of(command));
  }
  return kExitOk;
}

}  // namespace leeway::cli
