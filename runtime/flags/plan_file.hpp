#pragma once
// Runs plans without a scenario program.
#include <string>

#include "plan/plan.hpp"

namespace leeway {

/// Runs the plan of a TOML or JSON file, with the flags of a scenario program. argv[0] names the
/// program in errors. Returns the exit code: 0 done, 1 the run failed, 2 refused, 130 interrupted.
int run_plan_file(const std::string& path, int argc, char** argv);
/// The same with a plan.
int run_plan(const Plan& plan, int argc, char** argv);

}  // namespace leeway
