#pragma once
// Warm-up: the first iteration in a process takes much longer than later ones, because kernels are
// compiled and memory is touched for the first time. The other workers would wait for a worker that
// had joined before.
#include <memory>

#include "actors/job.hpp"
#include "actors/worker/compute_engine.hpp"

namespace leeway {

/// Computes an iteration with arbitrary weights, unless this process has computed one of the job.
void warm_up_engine(const std::shared_ptr<const Job>& job, WorkerId worker,
                    const std::shared_ptr<ComputeEngine>& engine);

}  // namespace leeway
