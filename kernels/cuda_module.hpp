#pragma once
// CudaModule: what libleeway_cuda.so offers to the program that loads it.
//
// The module is loaded only by a run on a GPU, so that Leeway itself links no library of CUDA. Both
// sides are built from one tree with one compiler; the version catches a module of another build.
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/executor.hpp"

namespace leeway {

struct CudaModule {
  /// Raised with every change of Executor, Blob, BlobPool, Fences or this table.
  static constexpr std::uint32_t kVersion = 3;

  std::uint32_t version;
  /// GPUs that can be used; when there is none, *why says the reason.
  int (*device_count)(std::string* why);
  /// An executor on GPU `index`; null when there can be none, for the reason in *why.
  std::shared_ptr<Executor> (*make_executor)(int index, std::string* why);
};

}  // namespace leeway

/// The module's one symbol. The table lives as long as the process.
extern "C" const leeway::CudaModule* leeway_cuda_module();
