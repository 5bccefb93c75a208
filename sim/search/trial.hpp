#pragma once
// Trial: the result of one simulated run of a search.
#include <cstdint>
#include <functional>
#include <string>

#include "actors/job.hpp"

namespace leeway::sim {

struct Trial {
  /// The violated property or check, such as "no deadlock" or "the run ends well"; empty for a
  /// correct run.
  std::string property;
  std::string report;  // details for people
  std::uint64_t events = 0;
};

/// Makes the job of a drawn plan.
using MakeJob = std::function<Expected<std::shared_ptr<const Job>>(const Plan&)>;
/// Validates the plan, loads its data and makes the job.
Expected<std::shared_ptr<const Job>> load_job(const Plan& plan);

/// Runs the plan under all checkers. `twice`: runs it again and compares the traces.
Trial try_plan(const Plan& plan, const MakeJob& make, bool twice = false);

}  // namespace leeway::sim
