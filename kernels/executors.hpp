#pragma once
// Executors by name: the processor's, or that of a GPU, whose code is loaded when it is first asked
// for.
//
// The code for GPUs is a module, libleeway_cuda.so. It is looked for in the environment variable
// LEEWAY_CUDA_MODULE, beside the running program, in ../lib from there, and where the system's
// loader looks. A run on the processor loads nothing.
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "kernels/executor.hpp"

namespace leeway {

/// An executor of its own for the caller: on the processor for host memory, for the calling thread,
/// or on a GPU.
Expected<std::shared_ptr<Executor>> make_executor(Device device);

/// Empty when a GPU can be used, else why none can. Loads the module.
std::string cuda_unavailable();

}  // namespace leeway
