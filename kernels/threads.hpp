#pragma once
// Kernels use one thread, the caller's. Parallelism is between actors, not inside a kernel.

namespace leeway::kernels {

/// Makes the kernels that this thread calls run only on this thread. Call it once in every
/// computing thread; otherwise each matrix product starts its own team of threads.
void use_one_compute_thread();

}  // namespace leeway::kernels
