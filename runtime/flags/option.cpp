#include "runtime/flags/option.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

#include "core/text.hpp"

namespace leeway {
namespace {

constexpr const char* kEmpty =
    "\"\" is not allowed; give a value that is not empty, or leave it out";

}  // namespace

template <class T>
Expected<T> read_value(const std::string& text, const std::string& allowed) {
  using Limits = std::numeric_limits<T>;
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  bool exact = error == std::errc() && stopped == end;
  if constexpr (std::is_floating_point_v<T>) exact = exact && std::isfinite(value);
  if (exact) return value;
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
    if (word.starts_with("--") && equals != word.npos && equals + 1 == word.size())
      throw CLI::ValidationError(std::string(word.substr(0, equals)), kEmpty);
  }
  app.parse(argc, argv);
}

}  // namespace leeway
