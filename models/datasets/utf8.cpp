#include "models/datasets/utf8.hpp"

namespace leeway {

std::optional<char32_t> next_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() - at < length)
    return std::nullopt;
  char32_t point = length == 1 ? first : first & (0x7fu >> length);
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return std::nullopt;
    point = point << 6 | (byte(i) & 0x3fu);
  }
  const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (too_long || surrogate || point > 0x10ffff) return std::nullopt;
  at += length;
  return point;
}

std::string utf8(char32_t point) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xc0 | point >> 6), tail(0)};
  if (point < 0x10000) return {byte(0xe0 | point >> 12), tail(6), tail(0)};
  return {byte(0xf0 | point >> 18), tail(12), tail(6), tail(0)};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (!next_point(text, at)) return false;
  return true;
}

void make_utf8(std::string& text) {
  if (is_utf8(text)) return;
  std::string converted;
  for (const char c : text) converted += utf8(static_cast<unsigned char>(c));
  text = std::move(converted);
}

}  // namespace leeway
