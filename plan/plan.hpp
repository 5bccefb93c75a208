#pragma once
// Plan: what a run is, as a plain value (plan/values.hpp, generated from plan.capnp), its text form
// and its checks.
#include <string>

#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

namespace plan {

/// No worker is slowed more, by all its stragglers together.
inline constexpr double kMaxSlowdown = 1e6;

}  // namespace plan

/// The plan as JSON text, indented, every field present.
std::string to_json(const Plan& plan);

/// Reads a plan from text. What is not mentioned keeps its default. Errors name `source`, the line
/// where it is known, the key, what was found and what would be right; an unknown key is refused
/// with the nearest known one.
Expected<Plan> plan_from_json(const std::string& text, const std::string& source);
Expected<Plan> plan_from_toml(const std::string& text, const std::string& source);
/// By the file's extension, .toml or .json.
Expected<Plan> plan_from_file(const std::string& path);

/// A world alone, as `leeway calibrate` writes one: the fields of `host.simulated`, checked like
/// those of a plan.
Expected<plan::World> world_from_file(const std::string& path);
/// The world as TOML, a comment behind each figure.
std::string to_toml(const plan::World& world);

/// Whether the plan makes sense by itself (counts in range, no contradiction), before any data is
/// read. The error says what to change: `workers: 0 is not allowed; give --workers 1 to 65536`.
Status validate(const Plan& plan);

}  // namespace leeway
