#pragma once
// From a model and the times of its layers to what a partition is searched over.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer_times.hpp"
#include "models/pieces.hpp"
#include "plan/plan.hpp"
#include "policies/pipeline/partition.hpp"

namespace leeway {

/// How the plan's model can be cut for that schedule, on devices of unit speed without a limit to
/// their memory, one a stage, in a world with these links. `times`: per layer, of a micro-batch of
/// the usual size; empty: what they come to by their shapes on a node of that world. Memory is that
/// of the largest micro-batch there ever is, on processors. The plan's own stages, schedule, chunks
/// and split are not looked at; which stages compute forward again is.
pipeline::PartitionProblem partition_problem(const Plan& plan, const Model& model,
                                             const pipeline::Spec& spec, const plan::World& world,
                                             std::span<const LayerTime> times = {});

/// The split by hand, or the best one where `split` is empty. An error of a split by hand begins
/// with `setting`.
Expected<pipeline::Partition> find_partition(const pipeline::PartitionProblem& problem,
                                             const std::string& split, std::string_view setting);

}  // namespace leeway
