#pragma once
// Queries on a plan's faults, for the hosts and the scheduler.
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

/// The end reason of an actor that this fault crashes.
inline EndReason reason_of(const Crash& crash) {
  if (crash.back > 0) return {EndReason::Kind::planned_crash, "fault of the plan: crash"};
  return {EndReason::Kind::planned_end, "fault of the plan: crash for good"};
}

}  // namespace plan

}  // namespace leeway
