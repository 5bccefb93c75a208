#pragma once
// simulate: runs a scenario in virtual time, for a test, and keeps all its events.
#include <cstdint>
#include <optional>
#include <vector>

#include "messages/events.hpp"
#include "runtime/scenario.hpp"
#include "testing/verdict.hpp"

namespace leeway {

/// An event of a simulated run, with the actor that emitted it.
struct SeenEvent {
  Address actor;
  Instant at;
  Event event;
};

/// The result of a simulated run, and everything that happened in it.
struct SimulatedRun : Result {
  std::vector<SeenEvent> seen;  // in order
};

struct SimulateOptions {
  std::optional<std::uint64_t> seed;  // instead of the plan's
  std::optional<plan::World> world;   // instead of the plan's
  /// Whether the run fails if a straggler or fault of the plan has no effect.
  bool strict = true;
};

/// Simulates the scenario under all checkers, without terminal output and run folder. The same
/// arguments give the same run. Example: simulate(scenario, {.seed = 3}).
SimulatedRun simulate(const Scenario& scenario, const SimulateOptions& options = {});
SimulatedRun simulate(const Plan& plan, const SimulateOptions& options = {});

/// Why the run failed or was refused, with its seed; empty if it ended well.
std::string failure_of(const SimulatedRun& run);

}  // namespace leeway
