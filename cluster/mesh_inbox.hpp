#pragma once
// MeshInbox: a queue of the messages between hosts and of the mesh's events, for one thread.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "messages/node.hpp"
#include "transport/mesh.hpp"

namespace leeway {

class MeshInbox {
 public:
  struct Item {
    enum class Kind : std::uint8_t {
      message,
      silent,
      heard,
      gone,
      note,
      left,  // a worker has left on request
    };
    Kind kind{};
    PeerId peer;
    std::unique_ptr<NodeEnvelope> message;  // only for Kind::message
    std::string text;                       // reason of `gone`, or the note
    WorkerId worker;                        // of `left`
  };

  void push(Item item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }
  /// Adds a message between hosts. A malformed message becomes a note.
  void push_message(PeerId peer, const Message& message) {
    auto decoded = decode_node(message);
    if (decoded)
      push(
          {Item::Kind::message, peer, std::make_unique<NodeEnvelope>(std::move(*decoded)), {}, {}});
    else
      push({Item::Kind::note, peer, {}, decoded.error().text, {}});
  }
  /// The next item; waits for it up to `limit`.
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
