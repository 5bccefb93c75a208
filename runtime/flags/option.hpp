#pragma once
// Options of programs whose values are read exactly or refused.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Reads a whole value: not empty, and for a number one that the type holds, in decimal digits
/// without a prefix. The error ends with the remedy: `allowed`, or what the type holds. T: text,
/// path, double, or an integer of 32 or 64 bits.
template <class T>
Expected<T> read_value(const std::string& text, const std::string& allowed = "");
template <>
Expected<std::string> read_value(const std::string& text, const std::string& allowed);
template <>
Expected<std::filesystem::path> read_value(const std::string& text, const std::string& allowed);

namespace option_detail {

template <class T>
struct Target {
  using Value = T;
  static void clear(T&) {}
  static void add(T& target, T value) { target = std::move(value); }
};
template <class T>
struct Target<std::optional<T>> {
  using Value = T;
  static void clear(std::optional<T>&) {}
  static void add(std::optional<T>& target, T value) { target = std::move(value); }
};
template <class T>
struct Target<std::vector<T>> {
  using Value = T;
  static void clear(std::vector<T>& target) { target.clear(); }
  static void add(std::vector<T>& target, T value) { target.push_back(std::move(value)); }
};

template <class T>
constexpr const char* type_name() {
  if constexpr (!std::is_arithmetic_v<T>) return "TEXT";
  if constexpr (std::is_floating_point_v<T>) return "FLOAT";
  return std::is_signed_v<T> ? "INT" : "UINT";
}

}  // namespace option_detail

/// Adds an option for a text, a number, an optional of one, or a vector of them (which may be given
/// several times). A usage error names the option, the value and the remedy. `allowed` describes
/// the values of a number: "1 to 65536".
template <class T>
CLI::Option* add_value(CLI::App& app, const std::string& name, T& target, const std::string& help,
                       const std::string& allowed = "") {
  using Kind = option_detail::Target<T>;
  using Value = typename Kind::Value;
  const auto read = [&target, name, allowed](const CLI::results_t& values) {
    Kind::clear(target);
    for (const auto& text : values) {
      auto value = read_value<Value>(text, allowed);
      if (!value) throw CLI::ValidationError(name, value.error().text);
      Kind::add(target, std::move(*value));
    }
    return true;
  };
  const auto shown = [&target] { return CLI::detail::to_string(target); };
  auto* const option =
      app.add_option(name, read, help, false, shown)->type_name(option_detail::type_name<Value>());
  if constexpr (std::is_same_v<T, std::vector<Value>>)
    option->expected(CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  return option;
}

/// Adds an option without a value.
CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& target,
                        const std::string& help);

/// Parses the command line. Unlike CLI::App::parse, refuses `--flag=` without a value.
void parse_words(CLI::App& app, int argc, const char* const* argv);

}  // namespace leeway
