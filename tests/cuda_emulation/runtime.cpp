#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "tests/cuda_emulation/cuda_runtime.h"

struct EmulatedStream {};
struct EmulatedEvent {};

namespace {

thread_local cudaError_t last_error = cudaSuccess;

/// Allocations of the device.
class DeviceMemory {
 public:
  void* allocate(std::size_t bytes) {
    void* const memory = ::operator new(bytes, kAlignment);
    std::memset(memory, 0xff, bytes);
    std::lock_guard lock(mutex_);
    sizes_[static_cast<const std::byte*>(memory)] = bytes;
    return memory;
  }
  void free(void* memory) {
    {
      std::lock_guard lock(mutex_);
      sizes_.erase(static_cast<const std::byte*>(memory));
    }
    ::operator delete(memory, kAlignment);
  }
  /// How much of the `bytes` at `place` lies in one allocation; `none` if not even the first byte
  /// does.
  enum class Where { none, partly, whole };
  Where find(const void* place, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    const auto* const at = static_cast<const std::byte*>(place);
    auto after = sizes_.upper_bound(at);
    if (after == sizes_.begin()) return Where::none;
    const auto& [begin, size] = *--after;
    const auto offset = static_cast<std::size_t>(at - begin);
    if (offset >= size) return Where::none;
    return bytes <= size - offset ? Where::whole : Where::partly;
  }

  static DeviceMemory& get() {
    static auto& only = *new DeviceMemory;
    return only;
  }

 private:
  static constexpr std::align_val_t kAlignment{256};
  std::mutex mutex_;
  std::map<const std::byte*, std::size_t, std::less<>> sizes_;
};

bool lies(const void* place, std::size_t bytes, bool on_device) {
  using Where = DeviceMemory::Where;
  return DeviceMemory::get().find(place, bytes) == (on_device ? Where::whole : Where::none);
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
      return "insufficient driver";
    case cudaErrorNoDevice:
      return "no device";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
  }
  return "unknown error";
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

void leeway::emulation::keep_error(cudaError_t error) {
  last_error = error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{4} << 30;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = DeviceMemory::get().allocate(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  DeviceMemory::get().free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = ::operator new(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  ::operator delete(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  if (!lies(to, bytes, kind != cudaMemcpyDeviceToHost) ||
      !lies(from, bytes, kind != cudaMemcpyHostToDevice))
    return cudaErrorInvalidValue;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  if (!lies(to, bytes, true)) return cudaErrorInvalidValue;
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row) {
    void* const begin = static_cast<std::byte*>(to) + row * pitch;
    if (const cudaError_t error = cudaMemsetAsync(begin, value, width, stream); error) return error;
  }
  return cudaSuccess;
}
