#pragma once
// Makes the problem of a partition search from a model and the times of its layers.
#include <span>
#include <string>
#include <string_view>

#include "models/layer_times.hpp"
#include "models/pieces.hpp"
#include "plan/plan.hpp"
#include "policies/pipeline/partition.hpp"

namespace leeway {

/// The problem of splitting the plan's model for that schedule, on devices of unit speed and
/// without memory limits, in a world with these links. `times`: per layer, for a micro-batch of the
/// usual size; empty: estimated from the layers' shapes for a node of that world. Memory is that of
/// the largest micro-batch on processors. Ignores the plan's stages, schedule, chunks and split,
/// but uses its list of stages that recompute.
pipeline::PartitionProblem partition_problem(const Plan& plan, const Model& model,
                                             const pipeline::Spec& spec, const plan::World& world,
                                             std::span<const LayerTime> times = {});

/// The given split, or the best one if `split` is empty. An error of a given split begins with
/// `setting`.
Expected<pipeline::Partition> find_partition(const pipeline::PartitionProblem& problem,
                                             const std::string& split, std::string_view setting);

}  // namespace leeway
