#include "models/datasets/vocabulary.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/utf8.hpp"

namespace leeway {

namespace {

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
