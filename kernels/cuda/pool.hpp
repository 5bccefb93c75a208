#pragma once
// Pools of GPU memory and of pinned host memory, and the events that order their use.
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "tensor/blob_pool.hpp"

namespace leeway::kernels::cuda {

/// A position in the queue of a stream.
class EventFence final : public Fence {
 public:
  EventFence(int device, Event event) : device_(device), event_(std::move(event)) {}
  ~EventFence() override;  // recycles the event
  cudaEvent_t get() const { return event_.get(); }

 private:
  const int device_;
  Event event_;
};

/// A fence at the current end of `stream` of `device`. Events are recycled.
std::shared_ptr<const EventFence> fence_after(int device, cudaStream_t stream);

/// The pool of a GPU's memory. Pools are never destroyed.
BlobPool& device_pool(int device);

/// The pool of host memory that all GPUs read and write in place. Requires a current device when
/// its first block is allocated.
BlobPool& pinned_pool();

}  // namespace leeway::kernels::cuda
