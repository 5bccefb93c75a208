#pragma once
// The part of CUDA that kernels/cuda uses, emulated on the CPU: this header replaces the toolkit's.
// All work is done before a call returns.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/cuda_emulation/block.hpp"

// ---- the language ----

#define __global__
#define __device__
#define __launch_bounds__(threads)
/// Blocks run one after the other and share one copy.
#define __shared__ static

struct alignas(16) float4 {
  float x, y, z, w;
};

template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
using std::isfinite;
// A product and a sum that no multiply-add replaces.
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
/// Index of the lowest bit plus 1; 0 if no bit is set.
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}

inline void __syncthreads() {
  leeway::emulation::sync_block();
}
inline int __syncthreads_or(int mine) {
  return leeway::emulation::any_of_block(mine != 0);
}
inline unsigned __ballot_sync(unsigned, int mine) {
  return leeway::emulation::ballot(mine != 0);
}
template <class T>
T __shfl_xor_sync(unsigned, T mine, int distance) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &mine, sizeof(T));
  bits = leeway::emulation::shuffle(bits, leeway::emulation::lane_index() ^ distance);
  std::memcpy(&mine, &bits, sizeof(T));
  return mine;
}
inline unsigned long long atomicMin(unsigned long long* place, unsigned long long value) {
  const unsigned long long before = *place;
  *place = min(before, value);
  return before;
}

// ---- the library ----

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
};
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
namespace leeway::emulation {
/// Sets the next result of cudaGetLastError.
void keep_error(cudaError_t error);
}  // namespace leeway::emulation

/// Always one device.
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);

// Nothing is ever pending, so streams and events do nothing.
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

/// New device memory is filled with NaN. Copies are refused if a pointer belongs to the wrong
/// memory for the kind of copy, or if the range exceeds a device allocation.
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
enum { cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream);
