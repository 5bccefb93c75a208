#include "runtime/flags/usage.hpp"

#include <iostream>

#include "core/exit_codes.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty())
      text += ' ' + option->get_type_name();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " REQUIRED";
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    return value.empty() ? option->get_description()
                         : concat(option->get_description(), " [", value, ']');
  }
};

/// The given subcommand, or the program without one.
const CLI::App& selected_command(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : selected_command(*given.front());
}

/// The option whose value was refused. CLI11 names it only in the text of the error.
const CLI::Option* option_of_error(const CLI::App& app, const std::string& text) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  const std::string_view begin =
      std::string_view(text).substr(text.starts_with(kPrefix) ? kPrefix.size() : 0);
  const CLI::Option* found = nullptr;
  for (const auto* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool longer = !found || name.size() > found->get_name().size();
    // Errors about the value of a flag without one omit the hyphens.
    const bool named = begin.starts_with(name) ||
                       begin.starts_with(name.substr(name.find_first_not_of('-')) + ' ');
    if (named && longer) found = option;
  }
  return found;
}

/// The error of an option that was given too often or without its value, or of a switch that was
/// given a value.
std::string value_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto* option = option_of_error(app, error.what());
  if (!option) return "";
  const std::string name = option->get_name(), type = option->get_type_name();
  const auto& values = option->results();
  if (option->get_expected_max() == 0) return concat(name, ": takes no value; leave the value out");
  if (values.empty()) return concat(name, ": its value is missing; give ", name, ' ', type);
  const auto max_values = static_cast<std::size_t>(option->get_expected_max());
  if (values.size() > max_values)
    return concat(name, ": is given ", values.size(), " times; give it once");
  return "";
}

/// Suggests the flag that is nearest to an unknown word.
std::string suggestion(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  const auto near = nearest(word.substr(0, word.find('=')), known);
  if (!near.empty() && word.starts_with('-')) return concat("; did you mean ", near, "?");
  return "; --help lists all flags";
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = selected_command(app);
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const auto words = app.remaining(true);
    if (!words.empty())
      return concat('"', words.front(), "\" is not known", suggestion(command, words.front()));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) ||
      dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const std::string text = value_error(command, error);
    if (!text.empty()) return text;
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error)) return error.what();  // from add_value()
  return concat(error.what(), "; --help lists all flags");
}

int answer(const CLI::App& app, const CLI::ParseError& error, const std::string& program) {
  if (error.get_exit_code() == 0) return app.exit(error);
  std::cerr << program << ": " << usage_error(app, error) << '\n';
  return kExitRefused;
}

}  // namespace leeway
