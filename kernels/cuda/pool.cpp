#include "kernels/cuda/pool.hpp"

#include <cstring>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "core/limits.hpp"
#include "core/text.hpp"

namespace leeway::kernels::cuda {

namespace {

/// Recycled events.
class SpareEvents {
 public:
  Event take() {
    {
      std::lock_guard lock(mutex_);
      if (!events_.empty()) {
        Event event = std::move(events_.back());
        events_.pop_back();
        return event;
      }
    }
    return Event();
  }
  void keep(Event event) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
};

/// The one T of each device, created on first use. It is never destroyed, because work that is
/// running when the program ends may still use it.
template <class T>
T& of_device(int device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::unique_ptr<T>>;
  std::lock_guard lock(mutex);
  auto& one = all[device];
  if (!one) {
    use_device(device);
    if constexpr (std::is_constructible_v<T, int>)
      one = std::make_unique<T>(device);
    else
      one = std::make_unique<T>();
  }
  return *one;
}

/// A pool keeps at most half of a device's memory when it is free.
std::size_t keep_bytes() {
  std::size_t free = 0, total = 0;
  LW_CUDA(cudaMemGetInfo(&free, &total));
  return total / 2;
}

class DevicePool final : public BlobPool {
 public:
  explicit DevicePool(int device)
      : BlobPool({Device::Kind::cuda, device}, keep_bytes(), true), index_(device) {}

  void read(std::byte* to, const Blob& blob) override {
    use_device(index_);
    for (const auto& fence : blob.fences()->blocking(0, false))
      LW_CUDA(cudaEventSynchronize(static_cast<const EventFence&>(*fence).get()));
    if (blob.size() == 0) return;
    LW_CUDA(cudaMemcpyAsync(to, blob.data(), blob.size(), cudaMemcpyDeviceToHost, stream_.get()));
    LW_CUDA(cudaStreamSynchronize(stream_.get()));
  }

 private:
  std::byte* system_allocate(std::size_t bytes) override {
    use_device(index_);
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw std::runtime_error(concat("cuda:", index_, ": out of memory for ", bytes,
                                      " bytes; give a smaller --batch, or more "
                                      "--micro-batches"));
    }
    LW_CHECK(memory != nullptr, bytes);
    return static_cast<std::byte*>(memory);
  }
  /// cudaFree waits for the device, so queued work is done. Its errors stem from earlier calls and
  /// are ignored: the last reference to a blob may go where nothing can be thrown.
  void system_free(std::byte* bytes) override { static_cast<void>(cudaFree(bytes)); }

  const int index_;
  Stream stream_;
};

class PinnedPool final : public BlobPool {
 public:
  PinnedPool() : BlobPool({}, limits::kPoolKeepBytes, false) {}
  void read(std::byte* to, const Blob& blob) override {
    if (blob.size() > 0) std::memcpy(to, blob.data(), blob.size());
  }

 private:
  std::byte* system_allocate(std::size_t bytes) override {
    void* memory = nullptr;
    LW_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return static_cast<std::byte*>(memory);
  }
  void system_free(std::byte* bytes) override { static_cast<void>(cudaFreeHost(bytes)); }
};

}  // namespace

void use_device(int index) {
  thread_local int present = -1;
  if (present == index) return;
  LW_CUDA(cudaSetDevice(index));
  present = index;
}

EventFence::~EventFence() {
  of_device<SpareEvents>(device_).keep(std::move(event_));
}

std::shared_ptr<const EventFence> fence_after(int device, cudaStream_t stream) {
  auto fence = std::make_shared<const EventFence>(device, of_device<SpareEvents>(device).take());
  LW_CUDA(cudaEventRecord(fence->get(), stream));
  return fence;
}

BlobPool& device_pool(int device) {
  return of_device<DevicePool>(device);
}

BlobPool& pinned_pool() {
  static auto& pool = *new PinnedPool;
  return pool;
}

}  // namespace leeway::kernels::cuda
