#pragma once
// SmallLane: frames in both directions over one stream, read by the mesh's poller.
//
// A frame is eight bytes (size of its body, kind) and its body. Any thread sends; it writes at
// once, and the poller writes the bytes that the connection does not take.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "transport/bytes.hpp"
#include "transport/poller.hpp"
#include "transport/stream.hpp"

namespace leeway::transport {

enum class FrameKind : std::uint8_t {
  letter,    // a message
  ack,       // LaneCounts: received messages. Also the sign of life
  offer,     // of shared memory, and whether the receiver's is readable
  bulk,      // the called side asks for the bulk lanes
  bye,       // no more will be sent; number of messages that were sent
  farewell,  // the answer to bye
};

class SmallLane final : public Poller::Watcher, public std::enable_shared_from_this<SmallLane> {
 public:
  struct Handlers {
    /// False: the frame is invalid, and the lane must end.
    std::function<bool(FrameKind, std::span<const std::byte> body)> on_frame;
    /// The connection has ended, or `invalid`: the peer sent invalid bytes.
    std::function<void(bool invalid)> on_end;
  };

  /// The stream has been greeted; the poller outlives the lane.
  SmallLane(std::unique_ptr<Stream> stream, Poller& poller);
  ~SmallLane() override;

  /// Begins to read. Handlers run on the poller's thread, on_end at most once.
  void start(Handlers handlers);
  /// Sends a frame with the bytes that `append` appends. From any thread; does not block.
  template <class Append>
  void send(FrameKind kind, Append&& append) {
    std::lock_guard lock(mutex_);
    const std::size_t at = begin_frame(kind);
    append(out_);
    end_frame(at);
  }
  void send(FrameKind kind) {
    send(kind, [](Bytes&) {});
  }
  /// Bytes that the connection has not taken yet.
  std::size_t backlog() const {
    std::lock_guard lock(mutex_);
    return out_.size() - written_;
  }
  /// Ends the connection. No handler begins afterwards; one that runs may still end.
  void close();

  void on_ready(std::uint32_t events) override;

 private:
  std::size_t begin_frame(FrameKind kind);
  void end_frame(std::size_t at);
  void flush();
  bool read();
  /// Handles the frames in the buffer. False: one is invalid.
  bool take_frames();
  void end(bool invalid);

  const std::unique_ptr<Stream> stream_;
  Poller& poller_;
  Handlers handlers_;  // set before reading begins

  // Only for the poller's thread:
  Bytes in_;
  std::size_t begin_ = 0, end_ = 0;  // unhandled bytes of in_

  mutable std::mutex mutex_;
  Poller::Id id_ = Poller::kNone;  // unless it is watched
  bool closed_ = false, waits_to_write_ = false;
  Bytes out_;
  std::size_t written_ = 0;  // of out_
};

}  // namespace leeway::transport
