#include "testing/simulate.hpp"

#include "core/text.hpp"

namespace leeway {

SimulatedRun simulate(const Scenario& scenario, const SimulateOptions& options) {
  return simulate(scenario.plan(), options);
}

SimulatedRun simulate(const Plan& plan, const SimulateOptions& options) {
  Plan simulated = plan;
  if (options.seed) simulated.seed = *options.seed;
  if (options.world) simulated.simulated = *options.world;
  if (!simulated.simulated) simulated.simulated = plan::World{};
  SimulatedRun out;
  RunOptions run_options;
  run_options.quiet = true;
  run_options.strict = options.strict;
  run_options.on_event = [&](Address actor, Instant at, const Event& event) {
    out.seen.push_back({actor, at, event});
  };
  static_cast<Result&>(out) = run(simulated, run_options);
  return out;
}

std::string failure_of(const SimulatedRun& run) {
  if (run.ok()) return "";
  return concat("the run of seed ", run.seed, run.ran ? " failed: " : " was refused: ",
                run.error.empty() ? std::string("it was interrupted") : run.error);
}

}  // namespace leeway
