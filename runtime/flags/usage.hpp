#pragma once
// Usage: how a program shows its help, and what it says to words that it does not understand.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace leeway {

/// Shows what an option has without being given behind its description, in brackets: "Workers [4]".
/// To be set before options and subcommands are added.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// What is wrong, in words that end in what to give: `--stages: "two" is not a number that it
/// takes; give a whole number, 0 or more`.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

/// Answers what parsing a command line has thrown: shows the help or the version that was asked
/// for, or says behind the program's name what is wrong. Returns the exit code, 0 or 2.
int answer(const CLI::App& app, const CLI::ParseError& error, const std::string& program);

}  // namespace leeway
