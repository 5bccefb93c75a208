#pragma once
// MeshInbox: what a mesh tells about the conversation between hosts, for one thread that takes it
// in its own time.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/mesh.hpp"
#include "messages/node.hpp"

namespace leeway {

class MeshInbox {
 public:
  struct Item {
    enum class Kind : std::uint8_t {
      said,
      silent,
      heard,
      gone,
      note,
      left,  // a worker, as it was asked to
    };
    Kind kind{};
    PeerId peer;
    std::unique_ptr<NodeEnvelope> said;  // null but for that kind
    std::string text;                    // why a peer is gone, or a note
    WorkerId worker;                     // who left
  };

  void push(Item item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }
  /// A message from host to host; one that cannot be read becomes a note.
  void push_message(PeerId peer, const Message& message) {
    auto said = decode_node(message);
    if (said)
      push({Item::Kind::said, peer, std::make_unique<NodeEnvelope>(std::move(*said)), {}, {}});
    else
      push({Item::Kind::note, peer, {}, said.error().text, {}});
  }
  /// The next, waiting for it up to `limit`.
  std::optional<Item> take(Duration limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(limit.ns), [&] { return !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
};

}  // namespace leeway
