#include "plan/fine_tuning.hpp"

#include <algorithm>
#include <string_view>

#include "core/text.hpp"
#include "plan/layer_range.hpp"

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
    const auto range = LayerRange::parse(part);
    if (!range)
      return Error{
          concat("fine_tuning.freeze: \"", part,
                 "\" is not a range of layers; give --freeze 0-3, or a list such as 0-3,5")};
    if (range->last >= layers)
      return Error{concat("fine_tuning.freeze: there is no layer ", range->last,
                          "; give layers from 0 to ", layers - 1)};
    std::fill(frozen.begin() + static_cast<std::ptrdiff_t>(range->first),
              frozen.begin() + static_cast<std::ptrdiff_t>(range->last) + 1, true);
  }
  return frozen;
}

}  // namespace leeway
