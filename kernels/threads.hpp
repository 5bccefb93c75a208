#pragma once
// How many threads a kernel may use: one, the caller's. Parallelism is between actors, not inside a
// kernel.

namespace leeway::kernels {

/// Makes all kernels that this thread calls from now on run on this thread alone. Call once in
/// every thread that computes: without it, each matrix product starts a team of its own.
void use_one_compute_thread();

}  // namespace leeway::kernels
