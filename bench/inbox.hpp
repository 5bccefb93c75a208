#pragma once
// Inbox: queues the messages that arrive over a mesh for a thread that takes them one by one.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/mesh.hpp"

namespace leeway::bench {

class Inbox {
 public:
  struct Item {
    PeerId peer;
    Address from;
    Message message;
  };
  /// Callbacks for a mesh. Requires that the inbox outlives the mesh.
  MeshEvents events() {
    MeshEvents events;
    events.on_message = [this](PeerId peer, Address from, Address, Message message) {
      std::lock_guard lock(mutex_);
      items_.push_back({peer, from, std::move(message)});
      changed_.notify_one();
    };
    return events;
  }
  /// The oldest message; nullopt if none arrives within the limit.
  std::optional<Item> take(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, limit, [&] { return !items_.empty(); })) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
};

}  // namespace leeway::bench
