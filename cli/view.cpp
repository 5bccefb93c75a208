// `leeway view`, `leeway report` and `leeway events`: a run from the files of its folder.
#include "cli/view.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "cli/commands.hpp"
#include "core/address.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "dashboard/report.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/event_log.hpp"
#include "monitoring/format.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/page.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/tools/recorded_page.hpp"

namespace leeway::cli {
namespace {

template <std::size_t... kIndex>
std::vector<std::string> names_of(std::index_sequence<kIndex...>) {
  return {event_name(std::variant_alternative_t<kIndex, Event::variant>())...};
}
/// "step_started", ...
std::vector<std::string> event_kinds() {
  return names_of(std::make_index_sequence<std::variant_size_v<Event::variant>>());
}

std::string events_note(const std::string& folder) {
  return events_path(folder)
             ? std::string()
             : "The run was not traced: the page has only curves, totals and causes. Run with "
               "--trace for all views.\n";
}

}  // namespace

// ---- view ----

CLI::App* add_view(CLI::App& app, ViewCommand& command) {
  auto* view = app.add_subcommand("view", "Serve the page of a run that has ended");
  add_value(*view, "RUN", command.folder, "Folder of a run; with --trace for all views")
      ->required();
  add_value(*view, "--serve", command.serve, "[HOST:]PORT of the page; 0: any free port")
      ->capture_default_str();
  add_value(*view, "--serve-token", command.token, kServeTokenHelp);
  return view;
}

int view(const ViewCommand& command) {
  const InterruptGuard guard;
  const auto options = dashboard::server_options(command.serve, command.token);
  if (!options) return refuse(options.error());
  std::cout << "reading " << command.folder << '\n' << std::flush;
  const auto page = RecordedPage::load(command.folder);
  if (!page) return refuse(page.error());
  const auto server = dashboard::Server::open(*options, (*page)->source());
  if (!server) return refuse(server.error());
  std::cout << events_note(command.folder) << "page: " << (*server)->url() << "\nCtrl-C ends\n"
            << std::flush;
  while (!guard.interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // A prediction may run for minutes. The page saves nothing, so it ends without waiting for it.
  std::cout << std::flush;
  std::_Exit(kExitInterrupted);
}

// ---- report ----

CLI::App* add_report(CLI::App& app, ReportCommand& command) {
  auto* report = app.add_subcommand("report", "Write the page of a run as one HTML file");
  add_value(*report, "RUN", command.folder, "Folder of a run; with --trace for all views")
      ->required();
  add_value(*report, "--out", command.out, "File to write [report.html in the folder of the run]");
  add_switch(*report, "--predict", command.predict,
             "Also simulate the run under other settings; takes some seconds or minutes");
  return report;
}

int report(const ReportCommand& command) {
  const auto page = RecordedPage::load(command.folder);
  if (!page) return refuse(page.error());
  const std::string path = command.out.empty() ? command.folder + "/report.html" : command.out;
  const std::string html = dashboard::report_of((*page)->state(command.predict));
  if (const auto written = write_durably(disk(), path, html); !written)
    return refuse(written.error(), kExitFailed);
  std::cout << events_note(command.folder) << path << ": " << size_text(html.size())
            << "; open it in a browser, it needs no network\n";
  return kExitOk;
}

// ---- events ----

CLI::App* add_events(CLI::App& app, EventsCommand& command) {
  auto* events = app.add_subcommand("events", "Print the events of a run as JSON lines");
  add_value(*events, "RUN", command.folder, "Folder of a run with --trace")->required();
  add_value(*events, "--actor", command.actor, "Only of this actor: worker2, shard0, scheduler");
  add_value(*events, "--kind", command.kind, "Only of this kind, such as step_started");
  add_value(*events, "--from", command.from, "Only from this second of the run", "0 or more");
  add_value(*events, "--until", command.until, "Only up to this second", "0 or more");
  add_value(*events, "--limit", command.limit, "Only this number of events, the first ones",
            "1 or more, or 0 for all");
  return events;
}

int events(const EventsCommand& command) {
  const auto path = events_path(command.folder);
  if (!path) return refuse(path.error());
  std::optional<Address> actor;
  if (!command.actor.empty()) {
    const auto parsed = parse_address(command.actor);
    if (!parsed) return refuse({concat("--actor: ", parsed.error().text)});
    actor = *parsed;
  }
  const auto instant = [](double seconds) {
    return Instant{static_cast<std::int64_t>(std::min(seconds, 9e9) * 1e9)};
  };
  if (const auto known = event_kinds();
      !command.kind.empty() && std::ranges::find(known, command.kind) == known.end())
    return refuse(
        {concat("--kind: \"", command.kind, "\" is no event", suggest(command.kind, known))});
  std::uint64_t printed = 0;
  struct Enough {};
  try {
    const auto read = read_events(
        *path,
        [&](const EventRecord& record) {
          if (actor && record.actor != *actor) return;
          if (!command.kind.empty() && event_name(record.event) != command.kind) return;
          std::cout << event_line(record.actor, record.at, record.event) << '\n';
          if (++printed == command.limit) throw Enough();
        },
        instant(command.from.value_or(0)), instant(command.until.value_or(9e9)));
    if (!read) return refuse(read.error());
  } catch (const Enough&) {
  }
  if (printed == 0) std::cerr << "leeway: no such event; `leeway events RUN` prints all\n";
  return kExitOk;
}

}  // namespace leeway::cli
