#include "plan/layer_range.hpp"

#include "core/number.hpp"

namespace leeway {

std::optional<LayerRange> LayerRange::parse(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number<std::size_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_number<std::size_t>(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return LayerRange{*first, *last};
}

}  // namespace leeway
