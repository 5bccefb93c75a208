#include "runtime/flags/option.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr const char* kEmpty = "\"\" is not allowed; give a value that is not empty";

/// The option of the program or of one of its commands; null if none has this name.
const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!option) option = find_option(*command, name);
  return option;
}

}  // namespace

template <class T>
Expected<T> read_value(const std::string& text, const std::string& allowed) {
  using Limits = std::numeric_limits<T>;
  const auto value = parse_number<T>(text);
  bool exact = value.has_value();
  if constexpr (std::is_floating_point_v<T>) exact = exact && std::isfinite(*value);
  if (exact) return *value;
  const std::string usual =
      std::is_floating_point_v<T>
          ? "a number"
          : concat("a whole number from ", Limits::min(), " to ", Limits::max());
  return Error{concat('"', text, "\" is not allowed; give ", allowed.empty() ? usual : allowed)};
}

template <>
Expected<std::string> read_value(const std::string& text, const std::string&) {
  if (text.empty()) return Error{kEmpty};
  return text;
}

template <>
Expected<std::filesystem::path> read_value(const std::string& text, const std::string&) {
  if (text.empty()) return Error{kEmpty};
  return std::filesystem::path(text);
}

template Expected<double> read_value(const std::string&, const std::string&);
template Expected<int> read_value(const std::string&, const std::string&);
template Expected<std::int64_t> read_value(const std::string&, const std::string&);
template Expected<std::uint32_t> read_value(const std::string&, const std::string&);
template Expected<std::uint64_t> read_value(const std::string&, const std::string&);

CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& target,
                        const std::string& help) {
  return app.add_flag(name, target, help)->disable_flag_override();
}

void parse_words(CLI::App& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    if (!word.starts_with("--") || equals + 1 != word.size()) continue;
    if (const auto* option = find_option(app, name))
      throw CLI::ValidationError(
          name, option->get_expected_max() > 0 ? kEmpty : "takes no value; leave the value out");
  }
  app.parse(argc, argv);
}

}  // namespace leeway
