#pragma once
// What the hosts and the scheduler ask about a plan's faults.
#include <algorithm>
#include <vector>

#include "core/end_reason.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// True for a worker that is not there when the run begins.
inline bool joins_later(const std::vector<plan::Fault>& faults, Address actor) {
  return std::any_of(faults.begin(), faults.end(), [&](const plan::Fault& fault) {
    return fault.actor == actor && std::holds_alternative<plan::Joins>(fault.kind);
  });
}

namespace plan {

/// Why an actor that this fault crashes has ended.
inline EndReason reason_of(const Crash& crash) {
  if (crash.back > 0) return {EndReason::Kind::planned_crash, "fault of the plan: crash"};
  return {EndReason::Kind::planned_end, "fault of the plan: crash for good"};
}

}  // namespace plan

}  // namespace leeway
