#pragma once
// Micro-batches: the number and size of the pieces that an iteration's samples are divided into.
//
// An iteration of the plan's batch has plan.micro_batches of them. With `--balance speed` an
// iteration can have more samples. A worker with the whole model then computes more micro-batches
// of the usual size. A pipeline, whose schedule fixes their number, computes larger ones. Fewer
// samples give fewer micro-batches, none larger than usual.
#include <cstdint>

#include "plan/plan.hpp"

namespace leeway {

/// The usual size: the most samples of a micro-batch in an iteration of the plan's batch.
std::int64_t micro_batch_size(const Plan& plan);

/// The most samples in a micro-batch of a pipeline.
std::int64_t largest_micro_batch(const Plan& plan);

/// Micro-batches of an iteration of `samples` samples.
std::int64_t micro_batches_of(const Plan& plan, std::int64_t samples);

/// The first sample of micro-batch `index` of `count`. Sizes differ by one sample at most.
inline std::int64_t first_sample(std::int64_t samples, std::int64_t index, std::int64_t count) {
  return samples * index / count;
}

}  // namespace leeway
