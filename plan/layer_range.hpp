#pragma once
// LayerRange: layers of a plan's list, as text.
#include <cstddef>
#include <optional>
#include <string_view>

namespace leeway {

struct LayerRange {
  std::size_t first = 0, last = 0;

  /// "3", or "3-5" with the last one included.
  static std::optional<LayerRange> parse(std::string_view text);
};

}  // namespace leeway
