#include "dashboard/page_text.hpp"

#include <algorithm>

namespace leeway::dashboard {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
/// Characters that end a path in an error, and those that end it before a space.
constexpr std::string_view kEnds = "\"'`<>|\t\r\n", kEndsBeforeSpace = ":)]}";

bool is_one_of(char character, std::string_view characters) {
  return characters.find(character) != std::string_view::npos;
}

/// Whether a path begins at the slash `at`: at the start of a word.
bool begins_path(std::string_view text, std::size_t at) {
  if (at > 0 && !is_one_of(text[at - 1], kSpaces) && !is_one_of(text[at - 1], kEnds) &&
      !is_one_of(text[at - 1], "([{=:;,"))
    return false;
  const std::size_t next = text.find_first_not_of('/', at);
  return next != std::string_view::npos && !is_one_of(text[next], kSpaces);
}

std::size_t end_of_path(std::string_view text, std::size_t at) {
  for (; at < text.size() && !is_one_of(text[at], kEnds); ++at)
    if (is_one_of(text[at], kEndsBeforeSpace) &&
        (at + 1 == text.size() || is_one_of(text[at + 1], kSpaces)))
      break;
  return at;
}

/// The begin of the last part of the path that begins at `at`.
std::size_t last_part(std::string_view text, std::size_t at) {
  const std::size_t end = end_of_path(text, at);
  std::size_t part = text.find_first_not_of('/', at);
  for (std::size_t slash = part; slash < end; ++slash) {
    if (text[slash] != '/') continue;
    if (begins_path(text, slash)) break;  // of the next path
    const std::size_t next = text.find_first_not_of('/', slash);
    if (next < end && text[next] != ' ') part = next;
  }
  return part;
}

/// The end of the web address whose "//" begins at `at`; `at` without one.
std::size_t end_of_address(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("//")) return at;
  const std::string_view before = text.substr(0, at);
  if (!before.ends_with("http:") && !before.ends_with("https:")) return at;
  return std::min(text.find_first_of(" \t\r\n\"'`<>", at), text.size());
}

}  // namespace

std::string without_folders(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t end = end_of_address(text, at); end > at) {
      shown += text.substr(at, end - at);
      at = end;
    } else if (text[at] == '/' && begins_path(text, at)) {
      at = last_part(text, at);
    } else {
      shown += text[at++];
    }
  }
  return shown;
}

}  // namespace leeway::dashboard
