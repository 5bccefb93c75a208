#include "cli/describe.hpp"

#include <algorithm>

#include "plan/settings.hpp"

namespace leeway::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Appends `path = value` for each leaf of the tree; an empty table is a leaf.
void flatten(const std::string& path, const Json& value, std::vector<std::string>& lines);

/// A value as TOML writes it after an equals sign or in a list.
std::string inline_text(const Json& value) {
  if (!value.is_structured()) return text_of(value);
  std::vector<std::string> items;
  if (value.is_object())
    for (const auto& [key, item] : value.items()) flatten(key, item, items);
  else
    for (const auto& item : value) items.push_back(inline_text(item));
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + item;
  if (value.is_array()) return "[" + out + "]";
  return out.empty() ? "{}" : "{ " + out + " }";
}

void flatten(const std::string& path, const Json& value, std::vector<std::string>& lines) {
  if (value.is_object() && !value.empty())
    for (const auto& [key, item] : value.items()) flatten(path + '.' + key, item, lines);
  else
    lines.push_back(path + " = " + inline_text(value));
}

/// Appends the help of the setting that `line` sets, as a comment.
std::string with_explanation(std::string line) {
  constexpr std::size_t kColumn = 40;
  const auto* setting = plan::find_setting(line.substr(0, line.find(" = ")));
  if (!setting) return line;
  if (line.size() < kColumn) line.resize(kColumn, ' ');
  return line + "  # " + setting->help;
}

std::string indented(const std::string& text, const std::string& margin) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out += margin;
    out += text.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string list_text(const std::vector<Manifest>& scenarios) {
  std::size_t width = 0;
  for (const auto& scenario : scenarios) width = std::max(width, scenario.name.size());
  std::string out;
  for (const auto& scenario : scenarios)
    out += scenario.name + std::string(width - scenario.name.size() + 2, ' ') + scenario.summary +
           '\n';
  return out;
}

std::string plan_file_text(const Json& plan) {
  std::string out;
  for (const auto& [key, value] : plan.items()) {
    std::vector<std::string> lines;
    if (value.is_array() && !value.empty()) {
      out += key + " = [\n";
      for (const auto& item : value) out += "  " + inline_text(item) + ",\n";
      out += "]\n";
    } else {
      flatten(key, value, lines);
    }
    for (const auto& line : lines) out += with_explanation(line) + '\n';
  }
  return out;
}

std::string describe_text(const Manifest& manifest) {
  return manifest.name + ": " + manifest.summary + "\n\n" + indented(manifest.description, "  ") +
         "\nDefault plan:\n\n" + indented(plan_file_text(manifest.plan), "  ") +
         "\nProgram: " + manifest.program.string() + '\n';
}

}  // namespace leeway::cli
