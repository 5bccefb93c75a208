#pragma once
// Settings that follow from the number of local steps.
#include <cstdint>

#include "plan/values.hpp"

namespace leeway {

/// Whether workers take local steps, and push pseudo-gradients instead of gradients.
inline bool has_local_steps(const Plan& plan) {
  return plan.local_steps.count > 0;
}

/// The samples of an iteration of one worker or pipeline: a batch, or one for each local step.
inline std::uint64_t iteration_samples(const Plan& plan) {
  return has_local_steps(plan) ? std::uint64_t{plan.batch} * plan.local_steps.count : plan.batch;
}

/// The local steps of an iteration of this many samples: batches that differ by one sample at most.
inline std::int64_t local_steps_of(const Plan& plan, std::int64_t samples) {
  return (samples + plan.batch - 1) / plan.batch;
}

}  // namespace leeway
