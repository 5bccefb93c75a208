#pragma once
// Checked CUDA calls, owners of streams and events, and On, the queue that a kernel joins.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "core/check.hpp"

/// LW_CUDA(call), LW_CUBLAS(call): on failure throw CheckFailed with file, line, the call and the
/// library's reason.
#define LW_CUDA(call)                                                                           \
  do {                                                                                          \
    if (const cudaError_t lw_status = (call); lw_status != cudaSuccess) [[unlikely]]            \
      ::leeway::detail::check_failed(__FILE__, __LINE__, #call, cudaGetErrorString(lw_status)); \
  } while (false)
#define LW_CUBLAS(call)                                                                            \
  do {                                                                                             \
    if (const cublasStatus_t lw_status = (call); lw_status != CUBLAS_STATUS_SUCCESS) [[unlikely]]  \
      ::leeway::detail::check_failed(__FILE__, __LINE__, #call, cublasGetStatusString(lw_status)); \
  } while (false)

namespace leeway::kernels::cuda {

/// A queue. Its kernels run one after the other and share `scratch`.
struct On {
  /// Bytes for the partial sums of reduce.hpp and losses.cu.
  static constexpr std::size_t kScratchBytes = std::size_t{2} << 20;

  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  std::byte* scratch = nullptr;  // kScratchBytes of the device
};

/// Makes `index` the current device of the calling thread.
void use_device(int index);

/// A stream of the current device that does not wait for the default stream.
class Stream {
 public:
  Stream() { LW_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An event of the current device, without timing.
class Event {
 public:
  Event() { LW_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) cudaEventDestroy(event_);
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace leeway::kernels::cuda
