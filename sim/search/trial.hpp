#pragma once
// Trial: one simulated run of a search, and what is wrong with it.
#include <cstdint>
#include <functional>
#include <string>

#include "actors/job.hpp"

namespace leeway::sim {

struct Trial {
  /// The property that was violated, "no deadlock", "the run ends well" and so on; empty when all
  /// is well.
  std::string property;
  std::string report;  // all that is known of it
  std::uint64_t events = 0;
};

/// How a search gets the job of a drawn plan.
using MakeJob = std::function<Expected<std::shared_ptr<const Job>>(const Plan&)>;
/// By load_data and make_job.
Expected<std::shared_ptr<const Job>> load_job(const Plan& plan);

/// Runs the plan under all checkers; `twice`: once more, to compare the two.
Trial try_plan(const Plan& plan, const MakeJob& make, bool twice = false);

}  // namespace leeway::sim
