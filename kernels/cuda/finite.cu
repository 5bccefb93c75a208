#include "kernels/cuda/families.hpp"
#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

namespace {

constexpr unsigned long long kNone = ~0ull;

/// Lowers *first to the smallest index of a number that is not finite. The order of the threads
/// does not matter. No thread leaves the loop early, so that its reads overlap.
__global__ void __launch_bounds__(kThreads)
    find_kernel(unsigned long long* first, const float* x, std::int64_t count) {
  std::int64_t mine = count;
#pragma unroll 4
  for (std::int64_t i = first_index(); i < count; i += index_step())
    if (!isfinite(x[i])) mine = min(mine, i);
  if (mine < count) atomicMin(first, static_cast<unsigned long long>(mine));
}

}  // namespace

std::int64_t find_non_finite(On on, std::int64_t* found, const float* x, std::int64_t count) {
  auto* const first = reinterpret_cast<unsigned long long*>(on.scratch);
  LW_CUDA(cudaMemsetAsync(first, 0xff, sizeof(kNone), on.stream));  // kNone
  if (count > 0) launch(on, blocks_for(count), kThreads, find_kernel, first, x, count);
  LW_CUDA(cudaMemcpyAsync(found, first, sizeof(kNone), cudaMemcpyDeviceToHost, on.stream));
  LW_CUDA(cudaStreamSynchronize(on.stream));
  return *found;  // kNone has the bits of -1
}

}  // namespace leeway::kernels::cuda
