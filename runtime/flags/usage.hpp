#pragma once
// Help texts and usage errors of programs.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace leeway {

/// Shows the default of an option in brackets after its description: "Workers [4]". Must be set
/// before options and subcommands are added.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// The text of a usage error, with an allowed value: `--stages: "two" is not allowed; give a whole
/// number, 0 or more`.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

/// Handles an exception of parsing the command line: prints the requested help or version, or the
/// usage error after the program's name. Returns the exit code, 0 or 2.
int answer(const CLI::App& app, const CLI::ParseError& error, const std::string& program);

}  // namespace leeway
