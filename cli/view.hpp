#pragma once
// The subcommands that show a run: `leeway view`, `report`, `top`, `compare` and `events`, with
// their flags.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leeway::cli {

struct ViewCommand {
  std::string folder;       // of a run
  std::string serve = "0";  // [HOST:]PORT
  std::string token;
};

struct ReportCommand {
  std::string folder;
  std::string out;  // a file; empty: in the folder
  bool predict = false;
};

struct TopCommand {
  std::string target;  // the URL of a page, or the folder of a run
  std::string tls;     // folder of `leeway cert`
  bool once = false;
};

struct CompareCommand {
  std::vector<std::string> folders;
  std::string out;  // an SVG file; empty: none
  bool json = false;
};

struct EventsCommand {
  std::string folder;
  std::string actor, kind;            // "worker2", "step_started"; empty: any
  std::optional<double> from, until;  // seconds of the run
  std::uint64_t limit = 0;            // 0: all
};

CLI::App* add_view(CLI::App& app, ViewCommand& command);
CLI::App* add_report(CLI::App& app, ReportCommand& command);
CLI::App* add_top(CLI::App& app, TopCommand& command);
CLI::App* add_compare(CLI::App& app, CompareCommand& command);
CLI::App* add_events(CLI::App& app, EventsCommand& command);

/// Serves the page of a recorded run until Ctrl-C.
int view(const ViewCommand& command);
/// Writes the page of a recorded run as one HTML file.
int report(const ReportCommand& command);
/// Shows a run in the terminal until it ends, or Ctrl-C.
int top(const TopCommand& command);
/// Prints what differs between runs, and draws their curves.
int compare(const CompareCommand& command);
/// Prints the events of a run as JSON lines.
int events(const EventsCommand& command);

}  // namespace leeway::cli
