#pragma once
// Fences: the queues of a GPU that may still read or write a blob.
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace leeway {

/// A position in a queue of work. Only the executor that created it knows how to wait for it.
class Fence {
 public:
  virtual ~Fence() = default;
};

using QueueId = std::uint64_t;

class Fences {
 public:
  /// Records that `queue` writes the blob until `fence`. Requires that it waits for all earlier
  /// fences.
  void wrote(QueueId queue, std::shared_ptr<const Fence> fence) {
    std::lock_guard lock(mutex_);
    readers_.clear();
    writer_ = {queue, std::move(fence)};
  }
  /// Records that `queue` reads the blob until `fence`.
  void read(QueueId queue, std::shared_ptr<const Fence> fence) {
    std::lock_guard lock(mutex_);
    for (auto& [id, latest] : readers_)
      if (id == queue) {
        latest = std::move(fence);
        return;
      }
    readers_.push_back({queue, std::move(fence)});
  }
  /// The fences of other queues that a reader in `queue` waits for; with `also_readers`, those that
  /// a writer waits for.
  std::vector<std::shared_ptr<const Fence>> blocking(QueueId queue, bool also_readers) const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<const Fence>> fences;
    if (writer_.second && writer_.first != queue) fences.push_back(writer_.second);
    if (also_readers)
      for (const auto& [id, fence] : readers_)
        if (id != queue) fences.push_back(fence);
    return fences;
  }

 private:
  using Entry = std::pair<QueueId, std::shared_ptr<const Fence>>;
  mutable std::mutex mutex_;
  Entry writer_{};
  std::vector<Entry> readers_;
};

}  // namespace leeway
