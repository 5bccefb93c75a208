#pragma once
// Plan: the settings of a run as a plain value (plan/values.hpp, generated from plan.capnp), with
// its text forms and checks.
#include <string>

#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

namespace plan {

/// Upper bound of the slowdown of one worker by all its stragglers together.
inline constexpr double kMaxSlowdown = 1e6;

}  // namespace plan

/// The plan as indented JSON with every field.
std::string to_json(const Plan& plan);

/// Parses a plan. Missing keys keep their defaults. Errors name `source`, the line if it is known,
/// the key, the value found and the remedy; for an unknown key, the nearest known one.
Expected<Plan> plan_from_json(const std::string& text, const std::string& source);
Expected<Plan> plan_from_toml(const std::string& text, const std::string& source);
/// By the file's extension, .toml or .json.
Expected<Plan> plan_from_file(const std::string& path);

/// Reads only a world, as `leeway calibrate` writes it: the fields of `host.simulated`, with the
/// checks of a plan.
Expected<plan::World> world_from_file(const std::string& path);
/// The world as TOML, with a comment after each figure.
std::string to_toml(const plan::World& world);

/// True if the scenario program defines the data, a layer or a straggler: no other program can run
/// the plan.
bool needs_program(const Plan& plan);

/// Checks ranges and contradictions before any data is read. The error ends with the remedy:
/// `workers: 0 is not allowed; give --workers 1 to 65536`.
Status validate(const Plan& plan);

}  // namespace leeway
