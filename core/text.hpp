#pragma once
// Text helpers for errors and terminal output.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leeway {

/// concat("worker ", 3) == "worker 3".
template <class... Values>
std::string concat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

std::string join(const std::vector<std::string>& items, std::string_view separator);

/// The items between the commas of a list, which may be empty: "a,,b" has three, "" has one.
std::vector<std::string> comma_separated(std::string_view text);

/// `text` without the spaces, tabs and carriage returns at its ends; a view into `text`.
std::string_view trimmed(std::string_view text);

/// 16384 bytes as "16.4 kB": in decimal units.
std::string size_text(std::uint64_t bytes);

/// `text` as one word of a shell, in quotes if necessary.
std::string shell_word(const std::string& text);
/// The same for a path, which no program takes for a flag: "./-x".
std::string shell_path(const std::string& path);

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" if none is near enough to be a typo of it.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// The end of an error about an unknown name: `; did you mean "momentum"?` or
/// `; known are a, b, c`.
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace leeway
