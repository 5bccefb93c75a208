#include "plan/precision.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "plan/layer_range.hpp"

namespace leeway {
namespace {

constexpr const char* kExample =
    "give --precision fp32, bf16, fp16, tf32 or mixed, or one of them with other precisions of "
    "some layers, such as bf16,0=fp32,3-5=tf32";

std::optional<Precision> precision_named(std::string_view name) {
  for (const Precision precision : kPrecisions)
    if (name == name_of(precision)) return precision;
  return std::nullopt;
}

/// "0, 2, 5": the layers with products.
std::string layers_with_products(const std::vector<plan::Layer>& model) {
  std::string text;
  for (std::size_t layer = 0; layer < model.size(); ++layer)
    if (has_products(model[layer])) text += concat(text.empty() ? "" : ", ", layer);
  return text;
}

}  // namespace

bool has_products(const plan::Layer& layer) {
  if (const auto* residual = std::get_if<plan::Residual>(&layer))
    return std::ranges::any_of(residual->body, has_products) ||
           std::ranges::any_of(residual->shortcut, has_products);
  return std::holds_alternative<plan::Linear>(layer) ||
         std::holds_alternative<plan::Unembedding>(layer) ||
         std::holds_alternative<plan::Conv2d>(layer) ||
         std::holds_alternative<plan::CustomLayer>(layer);
}

bool is_mixed_precision(const std::string& text) {
  return text.substr(0, text.find(',')) == "mixed";
}

Expected<std::vector<Precision>> parse_precision(const std::string& text,
                                                 const std::vector<plan::Layer>& model) {
  std::string_view rest = text;
  const std::string_view all = rest.substr(0, rest.find(','));
  const auto usual = is_mixed_precision(text) ? Precision::bf16 : precision_named(all);
  if (!usual) return Error{concat("precision: \"", all, "\" is not known; ", kExample)};
  std::vector<Precision> precisions(model.size(), *usual);
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
    if (range->last >= model.size())
      return Error{concat("precision: there is no layer ", range->last, "; give layers from 0 to ",
                          model.size() - 1)};
    const auto first = static_cast<std::ptrdiff_t>(range->first),
               end = static_cast<std::ptrdiff_t>(range->last) + 1;
    if (std::none_of(model.begin() + first, model.begin() + end, has_products))
      return Error{concat("precision: \"", part,
                          "\" names no layer with products, and all else computes in fp32; give "
                          "some of the layers ",
                          layers_with_products(model))};
    std::fill(precisions.begin() + first, precisions.begin() + end, *precision);
  }
  for (std::size_t layer = 0; layer < model.size(); ++layer)
    if (!has_products(model[layer])) precisions[layer] = Precision::fp32;
  return precisions;
}

bool multiplies_in_fp16(const Plan& plan) {
  const auto precisions = parse_precision(plan.precision, plan.model);
  return precisions && std::ranges::find(*precisions, Precision::fp16) != precisions->end();
}

}  // namespace leeway
