#pragma once
// Trial: the result of one simulated run of a search.
#include <cstdint>
#include <functional>
#include <string>

#include "actors/job.hpp"
#include "sim/observer.hpp"

namespace leeway::sim {

class ClusterSimulation;
class Simulation;

struct Trial {
  /// The violated property or check, such as "no deadlock" or "the run ends well"; empty for a
  /// correct run.
  std::string property;
  Damage damage = Damage::other;  // of a violation
  std::string report;             // details for people
  std::uint64_t events = 0;
  std::uint64_t crashes = 0;  // of all processes at once
  std::uint64_t losses = 0;   // of replicas of shards
  bool is_cut_short = false;  // faults have killed the program, or kept its job from starting
};

/// Makes the job of a drawn plan.
using MakeJob = std::function<Expected<std::shared_ptr<const Job>>(const Plan&, JobOptions)>;
/// Validates the plan, loads its data and makes the job.
Expected<std::shared_ptr<const Job>> load_job(const Plan& plan, JobOptions options = {});

/// Runs the plan under all checkers. `twice`: runs it again and compares the traces.
Trial try_plan(const Plan& plan, const MakeJob& make, bool twice = false);

/// Runs a simulation to its end, and returns what its checkers have found.
Trial watch(Simulation& simulation);
Trial watch(ClusterSimulation& simulation);

}  // namespace leeway::sim
