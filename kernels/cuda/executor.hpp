#pragma once
// CudaExecutor: a stream of one GPU.
#include <memory>

#include "kernels/executor.hpp"

namespace leeway::kernels::cuda {

/// An executor of its own on device `index`. Throws CheckFailed when CUDA refuses.
std::shared_ptr<Executor> make_executor(int index);

}  // namespace leeway::kernels::cuda
