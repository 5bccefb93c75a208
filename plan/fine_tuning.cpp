#include "plan/fine_tuning.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/text.hpp"

namespace leeway {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Expected<std::vector<std::pair<std::string, std::string>>> parse_init_map(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (text.empty()) return pairs;
  for (const std::string_view part : split(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return Error{
          concat("fine_tuning.init_map: \"", part,
                 "\" has no =; give --init-map OLD=NEW, such as net.= to remove the prefix "
                 "net.")};
    pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return pairs;
}

Expected<std::vector<bool>> parse_freeze(const std::string& text, std::size_t layers) {
  std::vector<bool> frozen(layers, false);
  if (text.empty() || text == "none") return frozen;
  for (const std::string_view part : split(text)) {
    const std::size_t dash = part.find('-');
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *first > *last)
      return Error{
          concat("fine_tuning.freeze: \"", part,
                 "\" is not a range of layers; give --freeze 0-3, or a list such as 0-3,5")};
    if (*last >= layers)
      return Error{concat("fine_tuning.freeze: there is no layer ", *last,
                          "; give layers from 0 to ", layers - 1)};
    std::fill(frozen.begin() + static_cast<std::ptrdiff_t>(*first),
              frozen.begin() + static_cast<std::ptrdiff_t>(*last) + 1, true);
  }
  return frozen;
}

}  // namespace leeway
