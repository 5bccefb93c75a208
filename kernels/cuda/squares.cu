#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"

namespace leeway::kernels::cuda {

namespace {

/// partial[b] = the sum over the elements of block b.
__global__ void __launch_bounds__(kThreads)
    squares_kernel(double* partial, const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = first_index(); i < count; i += index_step())
    sum += static_cast<double>(x[i]) * x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// *result = the sum of the partial sums, in one block.
__global__ void __launch_bounds__(kThreads)
    add_kernel(double* result, const double* partial, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = first_index(); i < count; i += index_step()) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace

double sum_of_squares(On on, double* found, const float* x, std::int64_t count) {
  if (count == 0) return 0;
  auto* const result = reinterpret_cast<double*>(on.scratch);
  double* const partial = result + 1;
  const auto blocks = blocks_for(count);
  launch(on, blocks, kThreads, squares_kernel, partial, x, count);
  launch(on, 1u, kThreads, add_kernel, result, static_cast<const double*>(partial),
         static_cast<std::int64_t>(blocks));
  LW_CUDA(cudaMemcpyAsync(found, result, sizeof(double), cudaMemcpyDeviceToHost, on.stream));
  LW_CUDA(cudaStreamSynchronize(on.stream));
  return *found;
}

}  // namespace leeway::kernels::cuda
