#pragma once
// Micro-batches: into how many pieces an iteration's samples are divided, and how large they are.
//
// An iteration of the plan's batch has plan.micro_batches of them. By speed an iteration may have
// more samples: who has the whole model takes more micro-batches of the usual size then, and a
// pipeline, whose schedule has plan.micro_batches of them, takes larger ones. Fewer samples give
// fewer micro-batches, none of them larger than usual.
#include <cstdint>

#include "plan/plan.hpp"

namespace leeway {

/// Samples of a micro-batch, at most, of an iteration that has the plan's batch: the usual size.
std::int64_t micro_batch_size(const Plan& plan);

/// The most samples that a micro-batch of a pipeline ever has.
std::int64_t largest_micro_batch(const Plan& plan);

/// Micro-batches of an iteration of so many samples. Pieces differ by a sample at most.
std::int64_t micro_batches_of(const Plan& plan, std::int64_t samples);

}  // namespace leeway
