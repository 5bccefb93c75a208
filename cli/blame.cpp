// `leeway blame`: what the workers of a run waited for, or what slowed the job of another training
// system.
#include "cli/blame.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "blame/critical_path.hpp"
#include "blame/run_waits.hpp"
#include "blame/slowdown.hpp"
#include "cli/commands.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/text_table.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/tools/remedies.hpp"

namespace leeway::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Rows that are printed of a long list.
constexpr std::size_t kShown = 8;

// ---- a run ----

std::string sentence(const blame::RunWaits& waits) {
  const auto causes = waits.by_cause();
  if (waits.compute + waits.wait <= 0 || causes.empty())
    return "No worker waited: there is nothing to blame.";
  const auto& [cause, seconds] = causes.front();
  return explain(cause, waits.share(seconds));
}

/// "worker 1 (2.20), 0 (2.18) and 5 more": the workers of the rows whose `member` is `value`,
/// without those below a percent of `seconds`.
template <class Row, class Value>
std::string workers_of(const std::vector<Row>& rows, Value Row::*member, const Value& value,
                       double seconds) {
  std::string text;
  std::size_t count = 0;
  for (const Row& row : rows) {
    if (row.*member != value || row.seconds < 0.01 * seconds || ++count > kShown) continue;
    text += concat(text.empty() ? "worker " : ", ", row.worker, " (", fixed(row.seconds, 2), ')');
  }
  if (count > kShown) text += concat(" and ", count - kShown, " more");
  return text;
}

/// A line for each of the sums, which are those of the rows by `member`. `whole`: seconds of which
/// shares are printed.
template <class Row, class Value>
std::string table_of(std::vector<std::string> header,
                     const std::vector<std::pair<Value, double>>& sums,
                     const std::vector<Row>& rows, Value Row::*member, double whole) {
  TextTable table;
  table.add(std::move(header));
  for (const auto& [value, seconds] : sums)
    table.add({name_of(value), fixed(seconds, 2), percent(seconds / whole),
               workers_of(rows, member, value, seconds)});
  return table.text();
}

void print(const blame::CriticalPath& path) {
  std::cout << "\nCritical path, " << duration(path.seconds) << ":\n\n"
            << table_of({"spent on", "seconds", "of the path", "of"}, path.by_activity(), path.rows,
                        &blame::CriticalPath::Row::activity, path.seconds)
            << '\n'
            << explain(path) << '\n';
}

void print(const blame::RunWaits& waits) {
  std::cout << waits.name << ", " << waits.workers << " workers: computing "
            << duration(waits.compute) << ", waiting " << duration(waits.wait) << " ("
            << percent(waits.share(waits.wait)) << " of all time)\n\n"
            << table_of({"waited for", "seconds", "of all time", "by"}, waits.by_cause(),
                        waits.rows, &blame::RunWaits::Row::cause, waits.compute + waits.wait)
            << '\n'
            << sentence(waits) << '\n';
  if (!waits.from_events && !waits.has_stages)
    std::cout << "Divided in proportion to parked times; run with --trace to divide each wait, and "
                 "to see the critical path.\n";
}

Json json_of(const blame::RunWaits& waits) {
  Json json{{"name", waits.name},         {"compute_seconds", waits.compute},
            {"wait_seconds", waits.wait}, {"from_events", waits.from_events},
            {"causes", Json::array()},    {"waits", Json::array()},
            {"text", sentence(waits)}};
  for (const auto& [cause, seconds] : waits.by_cause())
    json["causes"].push_back({{"cause", name_of(cause)}, {"seconds", seconds}});
  for (const auto& row : waits.rows)
    json["waits"].push_back(
        {{"worker", row.worker}, {"cause", name_of(row.cause)}, {"seconds", row.seconds}});
  return json;
}

Json json_of(const blame::CriticalPath& path) {
  Json json{{"seconds", path.seconds}, {"rows", Json::array()}, {"text", explain(path)}};
  for (const auto& row : path.rows)
    json["rows"].push_back(
        {{"activity", name_of(row.activity)}, {"worker", row.worker}, {"seconds", row.seconds}});
  return json;
}

std::string samples_text(const RunTimes& times) {
  return grouped(static_cast<std::uint64_t>(std::llround(times.samples_per_second)));
}

void print(const std::vector<Remedy>& remedies) {
  const bool has_loss = remedies.front().answer.changed.test_loss.has_value();
  TextTable table;
  std::vector<std::string> header{"what would help", "samples/s", "gain", "waiting"};
  if (has_loss) header.emplace_back("test loss");
  table.add(std::move(header));
  const auto row = [&](const std::string& name, const RunTimes& times, const std::string& gain) {
    std::vector<std::string> cells{name, samples_text(times), gain, percent(times.waiting)};
    if (has_loss) cells.push_back(times.test_loss ? fixed(*times.test_loss, 4) : "");
    table.add(std::move(cells));
  };
  row("as it ran (simulated)", remedies.front().answer.as_it_ran, "");
  for (const Remedy& remedy : remedies)
    row(remedy.name, remedy.answer.changed, signed_percent(remedy.gain()));
  std::cout << '\n' << table.text() << '\n';
  const auto best = std::ranges::max_element(remedies, {}, &Remedy::gain);
  std::cout << (best->gain() > 0 ? concat("Largest gain: ", best->name, ", ",
                                          signed_percent(best->gain()), " samples/s.")
                                 : std::string("None of these would make the run faster."))
            << (has_loss ? "\n" : " --gradients also predicts the loss.\n");
}

Json json_of(const std::vector<Remedy>& remedies) {
  Json rows = Json::array();
  for (const Remedy& remedy : remedies) {
    const RunTimes& times = remedy.answer.changed;
    rows.push_back({{"name", remedy.name},
                    {"samples_per_second", times.samples_per_second},
                    {"gain", remedy.gain()},
                    {"waiting", times.waiting}});
    if (times.test_loss) rows.back()["test_loss"] = *times.test_loss;
  }
  return rows;
}

/// The causes sum to the waiting time unless events were lost.
void print_difference(const blame::RunWaits& waits) {
  const double attributed = waits.attributed();
  if (std::abs(waits.wait - attributed) <= 0.01 * waits.wait) return;
  std::cerr << "leeway: the causes sum to " << duration(attributed) << ", and the workers waited "
            << duration(waits.wait) << ": the run has lost events\n";
}

int blame_run(const BlameOptions& options) {
  const auto waits = blame::read_run_waits(options.folder);
  if (!waits) return refuse(waits.error());
  std::optional<Expected<blame::CriticalPath>> path;
  if (events_path(options.folder)) path = blame::find_critical_path(options.folder);
  const blame::CriticalPath* const found = path && *path ? &**path : nullptr;
  std::optional<Expected<std::vector<Remedy>>> remedies;
  if (options.remedies) remedies = simulate_remedies(options.folder, options.gradients);
  if (remedies && !*remedies) return refuse(remedies->error());
  if (options.json) {
    Json json = json_of(*waits);
    if (found) json["critical_path"] = json_of(*found);
    if (path && !found) json["critical_path_error"] = path->error().text;
    if (remedies) json["remedies"] = json_of(**remedies);
    std::cout << json.dump(2) << '\n';
  } else {
    print(*waits);
    if (found) print(*found);
    if (remedies && (*remedies)->empty())
      std::cout << "\nA single worker or pipeline waits for no other: nothing to simulate.\n";
    else if (remedies)
      print(**remedies);
  }
  if (path && !found) std::cerr << "leeway: no critical path: " << path->error().text << '\n';
  print_difference(*waits);
  return kExitOk;
}

// ---- an imported trace ----

void print_ranks(const blame::Slowdown& slowdown, const blame::OperationTrace& trace) {
  std::map<int, std::map<int, double>> factors;  // by replica and stage
  for (const auto& [rank, seconds] : slowdown.only_rank)
    factors[rank.replica][rank.stage] = seconds / slowdown.without_stragglers;
  std::cout << "Slowdown if only one rank were slow\n";
  TextTable table;
  std::vector<std::string> header{"  replica"};
  for (int stage = 0; stage < trace.stages; ++stage) header.push_back(concat("stage ", stage));
  table.add(std::move(header));
  for (const auto& [replica, by_stage] : factors) {
    if (static_cast<std::size_t>(replica) >= kShown) break;
    std::vector<std::string> row{concat("  ", replica)};
    for (int stage = 0; stage < trace.stages; ++stage) {
      const auto found = by_stage.find(stage);
      row.push_back(found == by_stage.end() ? "-" : fixed(found->second, 3));
    }
    table.add(std::move(row));
  }
  std::cout << table.text();
  if (factors.size() > kShown)
    std::cout << "  ... and " << factors.size() - kShown << " more replicas (--json has all)\n";
  std::cout << '\n';
}

void print(const blame::Slowdown& slowdown, const blame::OperationTrace& trace) {
  std::cout << grouped(trace.operations.size()) << " operations in " << slowdown.steps << " steps, "
            << trace.replicas << " replicas of " << trace.stages << " stages\n\n";
  TextTable table;
  table.add({"", "seconds per step", "share of the loss"});
  const auto row = [&](const std::string& name, double seconds, bool is_part) {
    table.add({name, fixed(seconds, 4), is_part ? fixed(slowdown.share(seconds), 3) : ""});
  };
  row("as measured", slowdown.measured, false);
  row("as replayed", slowdown.replayed, false);
  row("without stragglers", slowdown.without_stragglers, false);
  std::string slowest;
  for (std::size_t i = 0; i < std::min(slowdown.slowest.size(), kShown); ++i)
    slowest += concat(slowest.empty() ? "" : ", ", slowdown.slowest[i].replica, '/',
                      slowdown.slowest[i].stage);
  if (slowdown.slowest.size() > kShown) slowest += " ...";
  row(concat("without the slowest ranks (", slowest, ')'), slowdown.without_slowest, true);
  for (std::size_t stage = 0; stage < std::min(slowdown.without_stage.size(), 4 * kShown); ++stage)
    row(concat("without stragglers in stage ", stage), slowdown.without_stage[stage], true);
  for (std::size_t kind = 0; kind < trace.kinds.size(); ++kind)
    if (std::abs(slowdown.share(slowdown.without_kind[kind])) >= 0.01)
      row(concat("without those of ", trace.kinds[kind]), slowdown.without_kind[kind], true);
  std::cout << table.text() << "\nSlowdown " << fixed(slowdown.factor(), 3)
            << " (as replayed / without stragglers)\n\n";
  print_ranks(slowdown, trace);
  std::cout << explain(slowdown, trace) << '\n';
}

Json json_of(const blame::Slowdown& slowdown, const blame::OperationTrace& trace) {
  Json json{{"steps", slowdown.steps},
            {"replicas", trace.replicas},
            {"stages", trace.stages},
            {"measured_seconds", slowdown.measured},
            {"replayed_seconds", slowdown.replayed},
            {"seconds_without_stragglers", slowdown.without_stragglers},
            {"slowdown", slowdown.factor()},
            {"slowest", Json::array()},
            {"seconds_without_slowest", slowdown.without_slowest},
            {"share_of_slowest", slowdown.share(slowdown.without_slowest)},
            {"seconds_without_stage", slowdown.without_stage},
            {"ranks", Json::array()},
            {"seconds_without_kind", Json::object()},
            {"text", explain(slowdown, trace)}};
  for (const auto& [replica, stage] : slowdown.slowest)
    json["slowest"].push_back({{"replica", replica}, {"stage", stage}});
  for (const auto& [rank, seconds] : slowdown.only_rank)
    json["ranks"].push_back({{"replica", rank.replica},
                             {"stage", rank.stage},
                             {"seconds_with_only_this_rank", seconds}});
  for (std::size_t kind = 0; kind < trace.kinds.size(); ++kind)
    json["seconds_without_kind"][trace.kinds[kind]] = slowdown.without_kind[kind];
  return json;
}

int blame_trace(const BlameOptions& options) {
  const auto trace = blame::read_operations(options.import);
  const auto slowdown =
      trace ? blame::find_slowdown(*trace) : Expected<blame::Slowdown>(trace.error());
  if (!slowdown) return refuse(slowdown.error());
  if (options.json)
    std::cout << json_of(*slowdown, *trace).dump(2) << '\n';
  else
    print(*slowdown, *trace);
  return kExitOk;
}

}  // namespace

CLI::App* add_blame(CLI::App& app, BlameOptions& options) {
  auto* blame = app.add_subcommand("blame", "Show what the workers of a run waited for");
  add_value(*blame, "RUN", options.folder, "Folder of a run, such as runs/fashion-mlp-...");
  add_value(*blame, "--import", options.import,
            "Instead of a run: operations of another training system, a CSV file with the columns "
            "dp_rank, stage, step, optype, start_ts, duration and seq_id; may be gzipped");
  add_switch(*blame, "--remedies", options.remedies,
             "Simulate a run with --trace again, with its own durations: without its worst "
             "straggler, and with other settings");
  add_switch(*blame, "--gradients", options.gradients,
             "With --remedies: compute real gradients, and compare losses; takes as long as the "
             "training, several times");
  add_switch(*blame, "--json", options.json, "Print JSON");
  return blame;
}

int blame(const BlameOptions& options) {
  if (options.folder.empty() == options.import.empty())
    return refuse({"blame: give the folder of a run, or --import FILE"});
  if (options.remedies && options.folder.empty())
    return refuse(
        {"--remedies: an imported trace has no settings to change; `leeway what-if "
         "--import FILE --staleness 4` simulates it"});
  if (options.gradients && !options.remedies)
    return refuse({"--gradients: nothing is simulated; give --remedies, too"});
  return options.import.empty() ? blame_run(options) : blame_trace(options);
}

}  // namespace leeway::cli
