#include <algorithm>

#include "plan/plan.hpp"

namespace leeway {
namespace {

bool has_custom_layer(const std::vector<plan::Layer>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const plan::Layer& layer) {
    if (const auto* residual = std::get_if<plan::Residual>(&layer))
      return has_custom_layer(residual->body) || has_custom_layer(residual->shortcut);
    return std::holds_alternative<plan::CustomLayer>(layer);
  });
}

}  // namespace

bool needs_program(const Plan& plan) {
  return std::holds_alternative<plan::CustomData>(plan.data) || has_custom_layer(plan.model) ||
         std::any_of(plan.stragglers.begin(), plan.stragglers.end(), [](const auto& straggler) {
           return std::holds_alternative<plan::CustomStraggler>(straggler.kind);
         });
}

}  // namespace leeway
