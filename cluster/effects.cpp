#include "cluster/effects.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway {

node::Effects effects_of(const Job& job) {
  node::Effects out;
  const auto stragglers = job.disturbances->stragglers();
  for (std::uint32_t i = 0; i < stragglers.size(); ++i)
    out.stragglers.push_back({i, stragglers[i].added, stragglers[i].iterations});
  const auto faults = job.disturbances->faults();
  for (std::uint32_t i = 0; i < faults.size(); ++i)
    if (faults[i]) out.fired.push_back(i);
  for (const auto& [worker, totals] : job.unreported->workers())
    out.workers.push_back({worker, totals.iterations, totals.samples, totals.compute, totals.wait,
                           totals.wait_before, totals.wait_after, totals.memory_bytes,
                           totals.outdated});
  return out;
}

Status add_effects(const node::Effects& effects, const Job& job) {
  const auto& plan = job.plan;
  const bool fits =
      std::ranges::all_of(effects.stragglers,
                          [&](const auto& one) { return one.number < plan.stragglers.size(); }) &&
      std::ranges::all_of(effects.fired,
                          [&](std::uint32_t fault) { return fault < plan.faults.size(); }) &&
      std::ranges::all_of(effects.workers,
                          [&](const auto& one) { return one.worker.value() < plan.workers; });
  if (!fits) return Error{"effects of a straggler, fault or worker that the plan lacks"};
  for (const auto& one : effects.stragglers) {
    job.disturbances->slowed(one.number, one.added);
    job.disturbances->slowed_iteration(one.number, one.iterations);
  }
  for (const std::uint32_t fault : effects.fired) job.disturbances->fired(fault);
  for (const auto& one : effects.workers) job.unreported->add(one.worker, one);
  return {};
}

}  // namespace leeway
