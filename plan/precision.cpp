#include "plan/precision.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "plan/layer_range.hpp"

namespace leeway {
namespace {

constexpr const char* kExample =
    "give --precision fp32, bf16, fp16 or tf32, or one of them with other precisions of some "
    "layers, such as bf16,0=fp32,3-5=tf32";

std::optional<Precision> precision_named(std::string_view name) {
  for (const Precision precision : kPrecisions)
    if (name == name_of(precision)) return precision;
  return std::nullopt;
}

}  // namespace

Expected<std::vector<Precision>> parse_precision(const std::string& text, std::size_t layers) {
  std::string_view rest = text;
  const std::string_view all = rest.substr(0, rest.find(','));
  const auto usual = precision_named(all);
  if (!usual) return Error{concat("precision: \"", all, "\" is not known; ", kExample)};
  std::vector<Precision> precisions(layers, *usual);
  rest.remove_prefix(all.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the comma
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(part.size());
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto range = LayerRange::parse(part.substr(0, equals));
    const auto precision = precision_named(part.substr(std::min(part.size(), equals + 1)));
    if (!range || !precision)
      return Error{concat("precision: \"", part, "\" is not known; ", kExample)};
    if (range->last >= layers)
      return Error{concat("precision: there is no layer ", range->last, "; give layers from 0 to ",
                          layers - 1)};
    std::fill(precisions.begin() + static_cast<std::ptrdiff_t>(range->first),
              precisions.begin() + static_cast<std::ptrdiff_t>(range->last) + 1, *precision);
  }
  return precisions;
}

}  // namespace leeway
