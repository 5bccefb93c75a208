// `leeway compare`: what differs between runs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "blame/result_file.hpp"
#include "cli/commands.hpp"
#include "cli/view.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "monitoring/metrics_file.hpp"
#include "monitoring/picture.hpp"
#include "runtime/cluster/text_table.hpp"
#include "runtime/flags/option.hpp"

namespace leeway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ComparedRun {
  std::string name;  // the last part of its folder
  nlohmann::json result;
  nlohmann::json plan;  // flat: "/batch" -> 32
  double waiting = 0;
  std::vector<std::pair<double, double>> train, test, accuracy;  // over seconds
};

void read_curves(const std::string& folder, ComparedRun& run) {
  for (const nlohmann::json& line : read_metrics(folder).lines) {
    const auto add = [&](const char* key, auto& curve, double scale) {
      if (line.contains(key) && line[key].is_number())
        curve.emplace_back(line["seconds"].get<double>(), scale * line[key].get<double>());
    };
    add("train_loss", run.train, 1);
    add("test_loss", run.test, 1);
    add("test_accuracy", run.accuracy, 100);
  }
}

Expected<ComparedRun> read_run(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  ComparedRun run;
  run.name = folder.substr(folder.rfind('/') + 1);
  const auto read = blame::read_result(folder, [&](const nlohmann::json& result) {
    run.result = result;
    run.waiting = blame::worker_seconds(result).waiting_share();
    for (const char* key : {"seconds", "samples_per_second", "parked_pulls", "samples_trained"})
      (void)result.at(key).get<double>();
  });
  if (!read) return read.error();
  std::ifstream plan(folder + "/plan.json");
  run.plan = nlohmann::json::parse(plan, nullptr, false);
  if (run.plan.is_discarded()) return Error{concat('"', folder, "/plan.json\" is missing")};
  run.plan = run.plan.flatten();
  read_curves(folder, run);
  return run;
}

/// "-12.3%" to the first run; empty for the first.
std::string change(double value, double first) {
  if (first == 0) return "";
  return concat(" (", signed_percent(value / first - 1), ')');
}

using Rows = std::vector<std::vector<std::string>>;

Rows result_rows(const std::vector<ComparedRun>& runs) {
  Rows rows;
  const auto add = [&](const char* name, const char* key, auto&& format) {
    std::vector<std::string> row{name};
    bool found = false;
    for (const ComparedRun& run : runs) {
      const bool has = run.result.contains(key) && run.result[key].is_number();
      found |= has;
      row.push_back(has ? format(run.result[key].get<double>()) : "-");
      const bool has_first =
          runs.front().result.contains(key) && runs.front().result[key].is_number();
      if (has && has_first && &run != &runs.front())
        row.back() += change(run.result[key], runs.front().result[key]);
    }
    if (found) rows.push_back(std::move(row));
  };
  const auto whole = [](double value) { return grouped(static_cast<std::uint64_t>(value)); };
  add("seconds", "seconds", [](double value) { return fixed(value, 2); });
  add("samples/s", "samples_per_second", whole);
  add("samples trained", "samples_trained", whole);
  add("iterations", "iterations", whole);
  std::vector<std::string> waiting{"waiting, of all time"};
  for (const ComparedRun& run : runs) waiting.push_back(percent(run.waiting));
  rows.push_back(std::move(waiting));
  add("parked pulls", "parked_pulls", whole);
  add("pushed bytes", "pushed_bytes", whole);
  add("pulled bytes", "pulled_bytes", whole);
  add("partial pushes", "partial_pushes", whole);
  add("test loss", "test_loss", [](double value) { return fixed(value, 4); });
  add("test accuracy", "test_accuracy", [](double value) { return percent(value); });
  return rows;
}

/// The settings of the plans that are not the same in all of them.
Rows setting_rows(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs)
    for (const auto& [key, value] : run.plan.items())
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::ranges::sort(keys);
  Rows rows;
  for (const std::string& key : keys) {
    std::vector<std::string> row{key.substr(1)};
    std::ranges::replace(row[0], '/', '.');
    for (const ComparedRun& run : runs)
      row.push_back(run.plan.contains(key) ? run.plan[key].dump() : "-");
    if (std::adjacent_find(row.begin() + 1, row.end(), std::not_equal_to<>()) != row.end())
      rows.push_back(std::move(row));
  }
  return rows;
}

std::string picture_of(const std::vector<ComparedRun>& runs) {
  std::vector<Chart> charts;
  const auto add = [&](const char* title, auto member) {
    Chart chart{.title = title, .x_label = "seconds", .y_label = title};
    for (const ComparedRun& run : runs)
      if (!(run.*member).empty()) chart.series.push_back({.name = run.name, .points = run.*member});
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  };
  add("training loss", &ComparedRun::train);
  add("test loss", &ComparedRun::test);
  add("test accuracy, %", &ComparedRun::accuracy);
  return svg(charts);
}

Json json_of(const Rows& rows) {
  Json json = Json::object();
  for (const auto& row : rows) json[row[0]] = std::vector(row.begin() + 1, row.end());
  return json;
}

}  // namespace

CLI::App* add_compare(CLI::App& app, CompareCommand& command) {
  auto* compare = app.add_subcommand("compare", "Show what differs between runs");
  add_value(*compare, "RUN", command.folders, "Folders of two or more runs that have ended")
      ->required()
      ->expected(-1);
  add_value(*compare, "--out", command.out, "SVG file for the curves of all runs [none]");
  add_switch(*compare, "--json", command.json, "Print JSON");
  return compare;
}

int compare(const CompareCommand& command) {
  if (command.folders.size() < 2) return refuse({"give the folders of two or more runs"});
  if (!command.out.empty() && !command.out.ends_with(".svg"))
    return refuse({concat("--out: \"", command.out, "\" is no SVG file; give curves.svg")});
  std::vector<ComparedRun> runs;
  for (const std::string& folder : command.folders) {
    auto run = read_run(folder);
    if (!run) return refuse(run.error());
    runs.push_back(std::move(*run));
  }
  const Rows results = result_rows(runs), settings = setting_rows(runs);
  std::vector<std::string> names{""};
  for (const ComparedRun& run : runs) names.push_back(run.name);
  if (command.json) {
    Json figures = Json::array();
    for (const ComparedRun& run : runs) {
      Json result(run.result);
      for (const char* list : {"workers", "waits", "evaluations", "version_lag"})
        result.erase(list);
      result["waiting"] = run.waiting;
      figures.push_back(std::move(result));
    }
    std::cout << Json{{"runs", std::vector(names.begin() + 1, names.end())},
                      {"results", figures},
                      {"settings", json_of(settings)}}
                     .dump(2)
              << '\n';
  } else {
    TextTable table;
    table.add(names);
    for (const auto& row : results) table.add(row);
    table.add({""});
    table.add({settings.empty() ? "The plans are equal." : "Settings that differ:"});
    for (const auto& row : settings) table.add(row);
    std::cout << table.text();
  }
  if (command.out.empty()) return kExitOk;
  if (const auto written = write_durably(disk(), command.out, picture_of(runs)); !written)
    return refuse(written.error(), kExitFailed);
  if (!command.json) std::cout << "\ncurves: " << command.out << '\n';
  return kExitOk;
}

}  // namespace leeway::cli
