#pragma once
// Memory of GPUs, host memory that they reach, and the events that order who uses it.
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "tensor/blob_pool.hpp"

namespace leeway::kernels::cuda {

/// A place in the queue of a stream.
class EventFence final : public Fence {
 public:
  EventFence(int device, Event event) : device_(device), event_(std::move(event)) {}
  ~EventFence() override;  // keeps the event for another fence
  cudaEvent_t get() const { return event_.get(); }

 private:
  const int device_;
  Event event_;
};

/// A fence at the present end of `stream`, which is of `device`. Events are used again, so that few
/// are ever made.
std::shared_ptr<const EventFence> fence_after(int device, cudaStream_t stream);

/// The pool of a GPU's memory. Pools, and what belongs to them, are never destroyed.
BlobPool& device_pool(int device);

/// The pool of host memory that all GPUs read and write in place. Its first block needs a device to
/// be in use.
BlobPool& pinned_pool();

}  // namespace leeway::kernels::cuda
