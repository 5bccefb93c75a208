#pragma once
// Random plans for property tests, and their text as TOML.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/plan/any_values.hpp"

namespace leeway::test {

/// Layers inside others are not deeper than plans may nest them.
inline void flatten(std::vector<plan::Layer>& layers, std::uint32_t depth) {
  for (plan::Layer& layer : layers)
    if (auto* residual = std::get_if<plan::Residual>(&layer)) {
      if (depth == limits::kMaxLayerDepth) {
        layer = plan::Relu{};
        continue;
      }
      flatten(residual->body, depth + 1);
      flatten(residual->shortcut, depth + 1);
    }
}
inline void make_valid(Plan& message) {
  flatten(message.model, 0);
}

/// A plan whose fields hold anything that their types hold. `most_seed` bounds the 64-bit fields.
inline Plan any_plan(std::uint64_t most_seed = std::numeric_limits<std::uint64_t>::max()) {
  Plan out;
  any(out);
  out.seed %= most_seed;
  out.stop.iterations %= most_seed;
  return out;
}

/// A JSON value as TOML writes it inside a line. JSON's texts and numbers are TOML's, too.
inline std::string toml_value(const nlohmann::ordered_json& value) {
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ", ";
    if (value.is_object()) out += key + " = ";
    out += toml_value(item);
  }
  return value.is_object() ? "{ " + out + " }" : "[" + out + "]";
}

inline std::string to_toml(const Plan& plan) {
  const auto tree = nlohmann::ordered_json::parse(to_json(plan));
  std::string out;
  for (const auto& [key, value] : tree.items()) out += key + " = " + toml_value(value) + '\n';
  return out;
}

}  // namespace leeway::test
