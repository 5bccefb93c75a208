// `leeway trace`: writes the events of a run as a trace for Perfetto.
#include "cli/trace.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "blame/timeline.hpp"
#include "cli/commands.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "runtime/flags/option.hpp"

namespace leeway::cli {

CLI::App* add_trace(CLI::App& app, TraceOptions& options) {
  auto* trace = app.add_subcommand("trace", "Write the events of a run as a trace for Perfetto");
  add_value(*trace, "RUN", options.folder, "Folder of a run with --trace")->required();
  add_value(*trace, "--out", options.out, "File to write [trace.json in the folder of the run]");
  return trace;
}

int trace(const TraceOptions& options) {
  const std::string path = options.out.empty() ? options.folder + "/trace.json" : options.out;
  const std::string unfinished = path + ".unfinished";
  std::ofstream file;
  const auto events = blame::write_timeline(options.folder, [&]() -> std::ostream& {
    file.open(unfinished);
    return file;
  });
  if (!events) return refuse(events.error());
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error)
    return refuse({concat('"', path, "\" cannot be written; check the folder and the disk")},
                  kExitFailed);
  std::cout << path << ": " << grouped(*events)
            << " events; open it at https://ui.perfetto.dev or chrome://tracing\n";
  return kExitOk;
}

}  // namespace leeway::cli
