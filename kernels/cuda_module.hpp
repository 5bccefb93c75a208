#pragma once
// CudaModule: the interface of libleeway_cuda.so.
//
// Only a run on a GPU loads the module, so Leeway links no CUDA library. Program and module are
// built from one tree with one compiler; kVersion catches a module of another build.
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/executor.hpp"

namespace leeway {

struct CudaModule {
  /// Raise it with every change of Executor, Blob, BlobPool, Fences or this table.
  static constexpr std::uint32_t kVersion = 4;

  std::uint32_t version;
  /// Number of usable GPUs; if 0, *why holds the reason.
  int (*device_count)(std::string* why);
  /// An executor on GPU `index`; on failure null, with the reason in *why.
  std::shared_ptr<Executor> (*make_executor)(int index, std::string* why);
};

}  // namespace leeway

/// The module's only symbol. The table lives as long as the process.
extern "C" const leeway::CudaModule* leeway_cuda_module();
