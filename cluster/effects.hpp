#pragma once
// Effects of stragglers and faults, and last counts of workers, from a node to the program.
#include "actors/job.hpp"
#include "messages/node.hpp"

namespace leeway {

/// What this process has counted for its part of the job. Call it when its actors have ended.
node::Effects effects_of(const Job& job);

/// Adds the counts of another node. Error: they do not fit the plan; nothing is added.
Status add_effects(const node::Effects& effects, const Job& job);

}  // namespace leeway
