#include "models/datasets/vocabulary.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"

namespace leeway {

namespace {

/// Decodes the code point at `at` and advances `at`; nullopt if the bytes are not UTF-8 (RFC 3629).
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

/// Calls f(code point, position of its first byte) for the whole text.
template <class F>
Status for_each_point(std::string_view text, const std::string& name, F f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto point = next_point(text, at);
    if (!point)
      return Error{concat(name, ": byte ", begin, " is not UTF-8: ", excerpt(text.substr(begin, 4)),
                          "; convert it, for example with iconv -t UTF-8")};
    if (Status status = f(*point, begin); !status) return status;
  }
  return {};
}

}  // namespace

Vocabulary::Vocabulary(std::vector<char32_t> points) {
  for (const char32_t point : points) {
    number_of_[point] = size();
    characters_.push_back(utf8(point));
  }
}

Expected<std::shared_ptr<const Vocabulary>> Vocabulary::of(std::string_view text,
                                                           const std::string& name) {
  std::set<char32_t> points;
  const auto read = for_each_point(text, name, [&](char32_t point, std::size_t) -> Status {
    points.insert(point);
    return {};
  });
  if (!read) return read.error();
  if (points.empty()) return Error{concat(name, ": is empty; give a file with a text")};
  if (points.size() > limits::kMaxVocabulary)
    return Error{concat(name, ": has ", points.size(), " different characters, at most ",
                        limits::kMaxVocabulary, " are possible; give a text in one script")};
  return std::shared_ptr<const Vocabulary>(new Vocabulary({points.begin(), points.end()}));
}

Expected<std::shared_ptr<const Vocabulary>> Vocabulary::parse(const std::string& json,
                                                              const std::string& name) {
  const Error broken{concat(name, ": is not a vocabulary that a run wrote; train again")};
  const auto tree = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!tree.is_object() || !tree.contains("characters") || !tree["characters"].is_array())
    return broken;
  std::vector<char32_t> points;
  for (const auto& item : tree["characters"]) {
    if (!item.is_string()) return broken;
    const auto text = item.get<std::string>();
    std::size_t at = 0;
    const auto point = text.empty() ? std::nullopt : next_point(text, at);
    if (!point || at != text.size() || (!points.empty() && points.back() >= *point)) return broken;
    points.push_back(*point);
  }
  if (points.empty() || points.size() > limits::kMaxVocabulary) return broken;
  return std::shared_ptr<const Vocabulary>(new Vocabulary(std::move(points)));
}

Expected<std::vector<std::int32_t>> Vocabulary::numbers(std::string_view text,
                                                        const std::string& name) const {
  std::vector<std::int32_t> out;
  const auto read = for_each_point(text, name, [&](char32_t point, std::size_t) -> Status {
    const auto found = number_of_.find(point);
    if (found == number_of_.end())
      return Error{concat(name, ": \"", utf8(point), "\" does not occur in the training text; ",
                          "leave it out")};
    out.push_back(found->second);
    return {};
  });
  if (!read) return read.error();
  return out;
}

std::string Vocabulary::json() const {
  return nlohmann::json{{"characters", characters_}}.dump() + "\n";
}

}  // namespace leeway
