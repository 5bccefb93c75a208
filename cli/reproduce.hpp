#pragma once
// `leeway reproduce`: published results beside simulated runs. Each is a scenario program, which
// parses its arguments itself.
#include <CLI/CLI.hpp>
#include <string_view>

#include "core/expected.hpp"

namespace leeway::cli {

CLI::App* add_reproduce(CLI::App& app);

/// Error: no published result has this name.
Status check_reproduction(std::string_view name);

/// Runs the program of the parsed subcommand of `reproduce`.
int reproduce(const CLI::App& reproduce);

}  // namespace leeway::cli
