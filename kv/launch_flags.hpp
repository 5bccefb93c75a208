#pragma once
// The flags of `leeway launch`, which are those of a run.
#include <optional>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "runtime/checkpoints.hpp"
#include "runtime/scenario.hpp"

namespace leeway::kv {

/// The plan of a store whose keys are not known yet.
Plan any_plan(const std::string& name = "leeway launch");

/// Applies the flags to the plan of a store. Refuses those that need a model, data or a simulation.
CommandLine read_flags(Plan plan, const std::vector<std::string>& flags);

/// Finds the checkpoint that --resume names, and makes it name that: "latest" may be another run a
/// moment later. nullopt without --resume. `name`: of the run, for "latest".
Expected<std::optional<ResumePoint>> find_resumed(std::vector<std::string>& flags,
                                                  const std::string& name);

}  // namespace leeway::kv
