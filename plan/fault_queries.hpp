#pragma once
// What the hosts and the scheduler ask about a plan's faults.
#include <algorithm>
#include <vector>

#include "plan/faults.hpp"

namespace leeway {

/// True for a worker that is not there when the run begins.
inline bool joins_later(const std::vector<plan::Fault>& faults, Address actor) {
  return std::any_of(faults.begin(), faults.end(), [&](const plan::Fault& fault) {
    return fault.actor == actor && std::holds_alternative<plan::Joins>(fault.kind);
  });
}

}  // namespace leeway
