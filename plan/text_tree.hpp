#pragma once
// TextNode: what a JSON or TOML text says, with the line of each value, before anything is made of
// it.
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
  bool negative = false;          // sign and
  std::uint64_t magnitude = 0;    // absolute value of an integer
  double fraction = 0;            // the value of a fraction, and of an integer rounded to a double
  std::string text;               // the value of a text; a number as it was written
  std::vector<std::string> keys;  // of a table, each once
  std::vector<TextNode> items;    // of a list, or one for each key of a table
};

/// How a message names the value: `"four"`, `-3`, `a list`.
std::string describe(const TextNode& node);

/// Reads one whole text. Errors say `source:line:column` and what was expected. Numbers keep what
/// was written: 4 is an integer, 4.0 a fraction. A table that names a key twice is refused, and so
/// are texts nested deeper than 64.
Expected<TextNode> parse_json(std::string_view text, const std::string& source);
Expected<TextNode> parse_toml(std::string_view text, const std::string& source);

}  // namespace leeway
