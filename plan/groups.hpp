#pragma once
// Members of a run: workers that train the same samples of the model together, as a pipeline or as
// a host group, or single ones.
#include <algorithm>
#include <cstdint>

#include "plan/values.hpp"

namespace leeway {

/// The workers of a host of this plan, if no cluster runs it: a process, or a simulated node. 0 if
/// there are more simulated node agents than workers.
inline std::uint32_t workers_per_host(const Plan& plan) {
  if (!plan.simulated) return plan.workers;
  const plan::World& world = *plan.simulated;
  if (world.agents > 0) return plan.workers / world.agents;
  return world.nodes == plan::World::Nodes::one ? plan.workers : world.workers_per_node;
}

/// The workers of a host group; 1 without groups.
inline std::uint32_t workers_per_group(const Plan& plan) {
  if (const auto* groups = std::get_if<plan::GroupsOf>(&plan.aggregate)) return groups->count;
  return std::holds_alternative<plan::HostGroups>(plan.aggregate) ? workers_per_host(plan) : 1;
}

/// The workers of a pipeline or of a host group, otherwise 1.
inline std::uint32_t workers_per_member(const Plan& plan) {
  return plan.pipeline.stages > 1 ? plan.pipeline.stages : std::max(workers_per_group(plan), 1u);
}

}  // namespace leeway
