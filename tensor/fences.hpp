#pragma once
// Fences: which queues of a GPU still read or write a blob.
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace leeway {

/// A place in a queue of work; what it means to wait for it is known to whoever made it.
class Fence {
 public:
  virtual ~Fence() = default;
};

using QueueId = std::uint64_t;

class Fences {
 public:
  /// `queue` has been asked to write, up to `fence`. Requires that it waited for all others before.
  void wrote(QueueId queue, std::shared_ptr<const Fence> fence) {
    std::lock_guard lock(mutex_);
    readers_.clear();
    writer_ = {queue, std::move(fence)};
  }
  /// `queue` has been asked to read, up to `fence`.
  void read(QueueId queue, std::shared_ptr<const Fence> fence) {
    std::lock_guard lock(mutex_);
    for (auto& [id, latest] : readers_)
      if (id == queue) {
        latest = std::move(fence);
        return;
      }
    readers_.push_back({queue, std::move(fence)});
  }
  /// What a reader, or with `also_readers` a writer, in `queue` has to wait for: the fences of
  /// other queues.
  std::vector<std::shared_ptr<const Fence>> ahead_of(QueueId queue, bool also_readers) const {
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
