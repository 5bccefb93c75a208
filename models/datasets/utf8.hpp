#pragma once
// UTF-8 (RFC 3629): code points of a text, and texts in other encodings.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leeway {

/// Decodes the code point at `at` and advances `at`; nullopt if the bytes are not UTF-8. Requires
/// at < text.size().
std::optional<char32_t> next_point(std::string_view text, std::size_t& at);

std::string utf8(char32_t point);

bool is_utf8(std::string_view text);

/// Converts a text that is not UTF-8, reading each byte as a character of Latin-1.
void make_utf8(std::string& text);

}  // namespace leeway
