#pragma once
// SendQueue: the messages for one peer, until the peer has received them.
//
// Each lane keeps its messages in the order of sending. The peer acknowledges how many it has
// received on each lane. After a lost connection, exactly the others are sent again. The small
// lane's unacknowledged bytes stay within a window; the bulk lane relies on TCP's. Not thread-safe.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "transport/letter.hpp"

namespace leeway::transport {

/// Messages of each lane, counted from the first connection to the peer.
struct LaneCounts {
  std::uint64_t small = 0, bulk = 0;
  bool operator==(const LaneCounts&) const = default;
};

class SendQueue {
 public:
  struct Sending {
    Parcel parcel;
    Packing packing;
  };

  explicit SendQueue(std::uint64_t window_bytes) : window_(window_bytes) {}

  /// Lends large blobs from now on, if possible; null: lends none.
  void lend_by(Lender* lender) { lender_ = lender; }
  /// Requires blobs in host memory.
  void put(Address from, Address to, Message message);
  /// The next message for the small lane; nothing if none waits or the window is full.
  std::optional<Sending> next_small();
  std::optional<Sending> next_bulk();
  bool has_bulk() const { return !bulk_.waiting.empty(); }

  /// False: the peer claims to have received more than was sent, or less than before.
  bool acknowledge(const LaneCounts& received);
  /// A new connection is made: all messages that the peer has not received wait again. False as in
  /// acknowledge().
  bool restart(const LaneCounts& received);
  /// Drops all messages.
  void clear();

  /// Whether the peer has received all messages.
  bool is_empty() const { return waiting() + small_.sent.size() + bulk_.sent.size() == 0; }
  /// Messages that wait for their first or next transmission.
  std::uint64_t waiting() const { return small_.waiting.size() + bulk_.waiting.size(); }
  /// Number of messages that have been sent on each lane.
  LaneCounts sent() const {
    return {small_.received + small_.sent.size(), bulk_.received + bulk_.sent.size()};
  }
  /// Number of messages that the peer has received.
  std::uint64_t acknowledged() const { return small_.received + bulk_.received; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Sent {
    Parcel parcel;
    std::uint64_t cost = 0;  // in the window
  };
  struct Lane {
    std::deque<Parcel> waiting;
    std::deque<Sent> sent;       // without acknowledgement
    std::uint64_t received = 0;  // by the peer
  };
  static bool is_possible(const Lane& lane, std::uint64_t received);
  void acknowledge(Lane& lane, std::uint64_t received);
  static void repeat(Lane& lane);
  Sending send(Lane& lane, Packing packing, std::uint64_t cost);

  const std::uint64_t window_;
  Lender* lender_ = nullptr;
  Lane small_, bulk_;
  std::map<std::pair<Address, Address>, std::uint64_t> orders_;  // messages of each pair
  std::uint64_t under_way_ = 0;                                  // bytes on the small lane
  std::uint64_t messages_ = 0, bytes_ = 0;
};

}  // namespace leeway::transport
