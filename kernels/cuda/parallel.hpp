#pragma once
// The loops of kernels: for_each runs a function for each index, map a formula for each element,
// and launch any other kernel.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace leeway::kernels::cuda {

constexpr int kThreads = 256;         // of a block
constexpr int kWarp = 32;             // threads that run in step
constexpr int kMaxBlocks = 132 * 32;  // enough to fill a GPU; a thread then takes several items

/// Blocks for `items`, `per_block` of them each: at least one, and no more than kMaxBlocks.
inline unsigned blocks_for(std::int64_t items, std::int64_t per_block = kThreads) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + per_block - 1) / per_block, 1, kMaxBlocks));
}

/// Runs kernel(arguments...) in `blocks` blocks of `threads` threads. Without nvcc,
/// tests/cuda_emulation runs it.
template <class... Parameters, class... Arguments>
void launch([[maybe_unused]] On on, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
#if defined(__CUDACC__)
  kernel<<<blocks, threads, 0, on.stream>>>(arguments...);
#else
  emulation::launch(blocks, threads, [&] { kernel(arguments...); });
#endif
  LW_CUDA(cudaGetLastError());
}

/// The index of this thread in the grid, and the number of threads in the grid.
__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t index_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

struct Division {
  std::int64_t quotient, remainder;
};
/// a / b for a >= 0, b > 0. Nearly all indices fit into 32 bits, where division is several times
/// faster.
__device__ inline Division divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto small = static_cast<std::uint32_t>(b);
    const auto quotient = static_cast<std::uint32_t>(a) / small;
    return {quotient, static_cast<std::uint32_t>(a) - quotient * small};
  }
  const std::int64_t quotient = a / b;
  return {quotient, a - quotient * b};
}

template <class Body>
__global__ void __launch_bounds__(kThreads) for_each_kernel(std::int64_t count, Body body) {
  for (std::int64_t i = first_index(); i < count; i += index_step()) body(i);
}

/// Calls body(i) for every i in [0, count), in any order.
template <class Body>
void for_each(On on, std::int64_t count, Body body) {
  if (count <= 0) return;
  launch(on, blocks_for(count), kThreads, for_each_kernel<Body>, count, body);
}

/// True if all pointers can be read four floats at a time.
template <class... Pointers>
bool aligned16(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) | ...) & 15) == 0;
}

template <class Formula, class... In>
__global__ void __launch_bounds__(kThreads)
    map_kernel(std::int64_t begin, std::int64_t end, float* out, Formula formula, const In*... in) {
  for (std::int64_t i = begin + first_index(); i < end; i += index_step())
    out[i] = formula(i, in[i]...);
}

/// Four elements per thread and step, all read before the first is written: `out` may be an input.
template <class Formula, class... In>
__global__ void __launch_bounds__(kThreads)
    map4_kernel(std::int64_t fours, float* out, Formula formula, const In*... in) {
  const auto four = [&](std::int64_t i, auto... v) {
    reinterpret_cast<float4*>(out)[i] = {formula(4 * i, v.x...), formula(4 * i + 1, v.y...),
                                         formula(4 * i + 2, v.z...), formula(4 * i + 3, v.w...)};
  };
  for (std::int64_t i = first_index(); i < fours; i += index_step())
    four(i, reinterpret_cast<const float4*>(in)[i]...);
}

/// out[i] = formula(i, in[i]...) for every i in [0, count). `out` may be one of the inputs.
template <class Formula, class... In>
void map(On on, std::int64_t count, float* out, Formula formula, const In*... in) {
  std::int64_t done = 0;
  if (count >= 4 && aligned16(out, in...)) {
    const std::int64_t fours = count / 4;
    launch(on, blocks_for(fours), kThreads, map4_kernel<Formula, In...>, fours, out, formula,
           in...);
    done = 4 * fours;
  }
  if (done == count) return;
  launch(on, blocks_for(count - done), kThreads, map_kernel<Formula, In...>, done, count, out,
         formula, in...);
}

}  // namespace leeway::kernels::cuda
