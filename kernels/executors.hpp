#pragma once
// make_executor: creates the executor of a device.
//
// The code for GPUs is a module, libleeway_cuda.so, loaded on first use. It is searched in the
// environment variable LEEWAY_CUDA_MODULE, next to the running program, in ../lib from there, and
// on the system loader's path.
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "kernels/executor.hpp"

namespace leeway {

/// A new executor: for host memory a CPU executor for the calling thread, otherwise one on a GPU.
Expected<std::shared_ptr<Executor>> make_executor(Device device);

/// The reason why no GPU is usable; empty if one is. Loads the module.
std::string cuda_unavailable();

}  // namespace leeway
