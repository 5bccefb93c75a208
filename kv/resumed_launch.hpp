#pragma once
// Launches that resume a run: whether the program fits the run, and which settings count.
#include <string>

#include "runtime/checkpoints.hpp"

namespace leeway::kv {

/// The checkpoint of a store's run, as find_checkpoint(). Error also for other runs. `name`: of the
/// run, if `where` is "latest"; a folder counts for a program of any name.
Expected<ResumePoint> find_store_run(const std::string& where, const std::string& name);

/// Why the run that began with this plan cannot continue with what the workers have declared; empty
/// if it can.
std::string why_not_resumed(const Plan& began, const Plan& declared);

/// Names the settings of the program that the resumed run does not take; empty without any. `plan`:
/// that of the run with its flags.
std::string ignored_settings(const Plan& plan, const Plan& began, const Plan& declared);

}  // namespace leeway::kv
