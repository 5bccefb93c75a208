// `leeway top`: a run in the terminal.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.hpp"
#include "cli/view.hpp"
#include "core/text.hpp"
#include "dashboard/client.hpp"
#include "dashboard/terminal.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/tools/recorded_page.hpp"

namespace leeway::cli {
namespace {

dashboard::TerminalSize terminal_size() {
  dashboard::TerminalSize size;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 40 && window.ws_row >= 8)
    size = {window.ws_col, window.ws_row - 1u};
  return size;
}

Expected<std::string> state_of(const TopCommand& command) {
  if (!std::filesystem::is_directory(command.target))
    return dashboard::fetch_state(command.target,
                                  command.tls.empty() ? "" : command.tls + "/ca.pem");
  const auto page = RecordedPage::load(command.target);
  if (!page) return page.error();
  return (*page)->state(false);
}

}  // namespace

CLI::App* add_top(CLI::App& app, TopCommand& command) {
  auto* top = app.add_subcommand("top", "Show a run in the terminal");
  add_value(*top, "PAGE", command.target,
            "URL that a run with --serve has printed, HOST:PORT, PORT, or the folder of a run")
      ->required();
  add_value(*top, "--tls", command.tls, "Folder of `leeway cert`, for a page with TLS");
  add_switch(*top, "--once", command.once, "Print the state once");
  return top;
}

int top(const TopCommand& command) {
  const InterruptGuard guard;
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  constexpr int kChecks = 20;  // for Ctrl-C, between two screens
  constexpr std::chrono::milliseconds kPeriod(1000);
  constexpr int kMostFailures = 3;
  bool has_shown = false;
  int failures = 0;
  const auto pause = [&] {
    for (int i = 0; i < kChecks && !guard.interrupted(); ++i)
      std::this_thread::sleep_for(kPeriod / kChecks);
  };
  for (; !guard.interrupted(); pause()) {
    const auto state = state_of(command);
    if (!state) {
      if (!has_shown) return refuse(state.error());
      if (++failures < kMostFailures) continue;
      std::cout << "The run has probably ended: " << state.error().text << '\n';
      return kExitOk;
    }
    failures = 0;
    try {
      const auto json = nlohmann::json::parse(*state);
      const std::string screen = dashboard::screen_of(json, terminal_size());
      const bool redraws = is_terminal && !command.once;
      std::cout << (redraws ? "\x1b[H\x1b[2J" : "") << screen << std::flush;
      has_shown = true;
      if (command.once || !json.at("ended").is_null()) return kExitOk;
    } catch (const nlohmann::json::exception& error) {
      return refuse({concat(command.target, " is not the page of a run: ", error.what())});
    }
  }
  return kExitInterrupted;
}

}  // namespace leeway::cli
