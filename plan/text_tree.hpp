#pragma once
// TextNode: the syntax tree of a JSON or TOML text, with the line of each value.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

struct TextNode {
  enum class Kind : std::uint8_t { null, boolean, integer, fraction, text, list, table, date };

  Kind kind = Kind::null;
  int line = 0;                   // from 1
  bool boolean = false;           // the value of a boolean
  bool negative = false;          // sign of an integer
  std::uint64_t magnitude = 0;    // its absolute value
  double fraction = 0;            // the value of a fraction, and of an integer rounded to a double
  std::string text;               // the value of a text; a number as written
  std::vector<std::string> keys;  // keys of a table, each once
  std::vector<TextNode> items;    // items of a list, or the values of `keys`
};

/// The value as errors show it: `"four"`, `-3`, `a list`.
std::string describe(const TextNode& node);

/// Parses a text. Errors begin with `source:line:column`, if the column is known. 4 is an integer,
/// 4.0 a fraction. Refuses duplicate keys and nesting deeper than 64 levels.
Expected<TextNode> parse_json(std::string_view text, const std::string& source);
Expected<TextNode> parse_toml(std::string_view text, const std::string& source);

}  // namespace leeway
