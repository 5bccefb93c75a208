#pragma once
// Small text helpers for messages that people read.
#include <cstddef>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leeway {

/// All arguments printed one after the other: concat("worker ", 3).
template <class... Values>
std::string concat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

std::string join(const std::vector<std::string>& items, std::string_view separator);

/// Without the spaces, tabs and carriage returns at its ends; borrowed from `text`.
std::string_view trimmed(std::string_view text);

/// Letters to insert, delete, replace or swap with a neighbour to turn `a` into `b` (optimal string
/// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean "momentum"?` or `; known are a, b, c` - the end of an error about an unknown
/// name.
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace leeway
