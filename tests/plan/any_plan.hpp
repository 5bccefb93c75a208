#pragma once
// Random plans for property tests, and their text as TOML.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/plan/any_values.hpp"

namespace leeway::test {

/// Replaces layers that are nested deeper than a plan may nest them.
inline void limit_depth(std::vector<plan::Layer>& layers, std::uint32_t depth) {
  for (plan::Layer& layer : layers)
    if (auto* residual = std::get_if<plan::Residual>(&layer)) {
      if (depth == limits::kMaxLayerDepth) {
        layer = plan::Relu{};
        continue;
      }
      limit_depth(residual->body, depth + 1);
      limit_depth(residual->shortcut, depth + 1);
    }
}

/// A plan with random values in all fields; those of 64 bits are at most `most`.
inline Plan any_plan(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  Plan out;
  any(out);
  limit_depth(out.model, 0);
  out.seed = std::min(out.seed, most);
  out.stop.iterations = std::min(out.stop.iterations, most);
  if (auto* every = std::get_if<plan::EveryIterations>(&out.checkpoints.every))
    every->iterations = std::min(every->iterations, most);
  return out;
}

/// A JSON value as inline TOML; texts and numbers have the same form in both.
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
