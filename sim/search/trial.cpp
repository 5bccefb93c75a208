#include "sim/search/trial.hpp"

#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "sim/cluster/simulation.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {

namespace {

/// Well above the length of any drawn run; a longer run is taken for a livelock.
constexpr std::uint64_t kMostEvents = 5'000'000;

bool is_cut_short(const Simulation&) {
  return false;
}
bool is_cut_short(const ClusterSimulation& simulation) {
  return simulation.is_cut_short();
}

template <class AnySimulation>
Trial watch_any(AnySimulation& simulation, const Trace& trace) {
  Trial trial;
  try {
    const std::string stuck = simulation.run([&] {
      if (trace.steps() > kMostEvents)
        throw Violation("the run ends", {}, concat("it has taken ", trace.steps(), " steps"));
    });
    trial.is_cut_short = is_cut_short(simulation);
    if (trial.is_cut_short) {
      // The run has no end to judge.
    } else if (!stuck.empty()) {
      trial.property = "no deadlock";
      trial.report = stuck;
    } else if (simulation.totals().end.reason == msg::RunEnded::Reason::failed) {
      trial.property = "the run ends well";
      trial.report = simulation.totals().end.text;
    }
  } catch (const Violation& violation) {
    trial.property = violation.property();
    trial.damage = violation.damage();
    trial.report = violation.what();
  } catch (const CheckFailed& failed) {
    trial.property = "internal checks hold";
    trial.report = failed.what();
  }
  trial.events = trace.steps();
  return trial;
}

struct Traced {
  Trial trial;
  std::uint64_t protocol = 0, numeric = 0, steps = 0;
};

Traced try_once(const std::shared_ptr<const Job>& job) {
  const auto traced = [](auto& simulation, const Trace& trace) {
    Trial trial = watch(simulation);
    return Traced{std::move(trial), trace.protocol(), trace.numeric(), trace.steps()};
  };
  if (has_agents(job->plan)) {
    ClusterSimulation simulation(job, {});
    return traced(simulation, simulation.trace());
  }
  Simulation simulation(job, {});
  return traced(simulation, simulation.trace());
}

}  // namespace

Trial watch(Simulation& simulation) {
  return watch_any(simulation, simulation.trace());
}

Trial watch(ClusterSimulation& simulation) {
  return watch_any(simulation, simulation.trace());
}

Expected<std::shared_ptr<const Job>> load_job(const Plan& plan, JobOptions options) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  auto data = load_data(plan.data, plan.seed);
  if (!data) return data.error();
  return make_job(plan, std::move(*data), std::move(options));
}

Trial try_plan(const Plan& plan, const MakeJob& make, bool twice) {
  const auto job = make(plan, {});
  if (!job) return {.property = "the plan is valid", .report = job.error().text};
  Traced first = try_once(*job);
  if (!twice || !first.trial.property.empty()) return first.trial;
  const auto again = make(plan, {});
  LW_CHECK(bool(again), again ? std::string() : again.error().text);
  const Traced second = try_once(*again);
  if (first.protocol == second.protocol && first.numeric == second.numeric) return first.trial;
  first.trial.property = "property 9: two runs of one seed take the same steps";
  first.trial.report =
      concat("the hashes of ", first.steps, " and ", second.steps, " steps differ");
  return first.trial;
}

}  // namespace leeway::sim
