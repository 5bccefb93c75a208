#include <exception>

#include "kernels/cuda/executor.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/cuda_module.hpp"

namespace {

using leeway::CudaModule;

int device_count(std::string* why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  switch (status) {
    case cudaSuccess:
    case cudaErrorNoDevice:
      *why = "CUDA finds no GPU; check CUDA_VISIBLE_DEVICES";
      break;
    case cudaErrorInsufficientDriver:
      *why = "NVIDIA's driver is missing or older than Leeway's CUDA version; update the driver";
      break;
    default:
      *why = std::string("CUDA does not start: ") + cudaGetErrorString(status);
  }
  return 0;
}

std::shared_ptr<leeway::Executor> make_executor(int index, std::string* why) {
  try {
    return leeway::kernels::cuda::make_executor(index);
  } catch (const std::exception& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const CudaModule* leeway_cuda_module() {
  static constexpr CudaModule module = {CudaModule::kVersion, device_count, make_executor};
  return &module;
}
