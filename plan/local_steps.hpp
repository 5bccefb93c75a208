#pragma once
// Settings that follow from the number of local steps.
#include <cstdint>

#include "plan/groups.hpp"
#include "plan/values.hpp"

namespace leeway {

/// Whether workers take local steps, and push pseudo-gradients instead of gradients.
inline bool has_local_steps(const Plan& plan) {
  return plan.local_steps.count > 0;
}

/// The samples of an iteration of one member: a batch, or one for each local step, or one for each
/// worker of a host group.
inline std::uint64_t iteration_samples(const Plan& plan) {
  const std::uint32_t batches =
      has_local_steps(plan) ? plan.local_steps.count : workers_per_group(plan);
  return std::uint64_t{plan.batch} * batches;
}

/// The samples of a round of all members.
inline std::uint64_t round_samples(const Plan& plan) {
  return plan.workers / workers_per_member(plan) * iteration_samples(plan);
}

/// The local steps of an iteration of this many samples: batches that differ by one sample at most.
inline std::int64_t local_steps_of(const Plan& plan, std::int64_t samples) {
  return (samples + plan.batch - 1) / plan.batch;
}

}  // namespace leeway
