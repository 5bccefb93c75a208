#pragma once
// parse_number(): a number from a text.
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace leeway {

/// The number whose text is all of `text`, as std::from_chars reads it: without spaces or a leading
/// plus. nullopt for other texts, and for numbers that T cannot have.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace leeway
