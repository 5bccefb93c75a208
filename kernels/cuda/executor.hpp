#pragma once
// CudaExecutor: an Executor on one stream of a GPU.
#include <memory>

#include "kernels/executor.hpp"

namespace leeway::kernels::cuda {

/// A new executor on device `index`. Throws CheckFailed if CUDA fails.
std::shared_ptr<Executor> make_executor(int index);

}  // namespace leeway::kernels::cuda
