#pragma once
// Queries on a plan's stragglers and faults, for the hosts and the scheduler.
#include <algorithm>
#include <vector>

#include "core/end_reason.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// True for a worker that joins after the run has begun.
inline bool joins_later(const std::vector<plan::Fault>& faults, Address actor) {
  return std::any_of(faults.begin(), faults.end(), [&](const plan::Fault& fault) {
    return fault.actor == actor && std::holds_alternative<plan::Joins>(fault.kind);
  });
}

namespace plan {

/// Whether the straggler slows this worker.
inline bool slows(const Straggler& straggler, std::uint32_t worker) {
  const auto& together = straggler.together;
  if (straggler.all) return true;
  if (together.empty()) return straggler.worker == worker;
  return std::find(together.begin(), together.end(), worker) != together.end();
}
/// Removes these workers from all stragglers but those of every worker, and then stragglers that
/// slow no worker.
template <class IsGone>
void remove_workers(std::vector<Straggler>& stragglers, IsGone is_gone) {
  std::erase_if(stragglers, [&](Straggler& it) {
    if (it.all) return false;
    if (it.together.empty()) return bool(is_gone(it.worker));
    std::erase_if(it.together, is_gone);
    return it.together.empty();
  });
}

/// The end reason of an actor that this fault crashes.
inline EndReason reason_of(const Crash& crash) {
  if (crash.back > 0) return {EndReason::Kind::planned_crash, "fault of the plan: crash"};
  return {EndReason::Kind::planned_end, "fault of the plan: crash for good"};
}

}  // namespace plan

}  // namespace leeway
