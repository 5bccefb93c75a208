#pragma once
// Outbound: the messages that wait for one peer, and the order of their frames.
//
// Messages of one pair of actors leave in order. Pairs take turns, one frame each, so a small
// message waits only for tensors of its own pair. Frames without credit from the peer are in
// flight, and next() keeps them within the window. A bulk connection uses TCP's window: next()
// gives its frames a few ahead of the sent ones. Not thread-safe.
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "cluster/frame.hpp"

namespace leeway::cluster {

class Outbound {
 public:
  /// A chunk has `chunk_bytes`, or a quarter of the window if that is less.
  Outbound(std::uint64_t window_bytes, std::uint64_t chunk_bytes);

  /// Lends large blobs from now on, if possible; null: lends none.
  void lend_by(Lender* lender) { lender_ = lender; }
  /// Whether new messages with large blobs use a bulk connection.
  void use_bulk(bool use) { bulk_ = use; }
  /// Requires blobs in host memory.
  void put(Address from, Address to, Message message);
  /// The next frame to send, without its token.
  std::optional<Frame> next();
  /// The peer has received `bytes`.
  void credited(std::uint64_t bytes);
  /// A frame for the bulk connection has been sent.
  void bulk_sent() { --bulk_ahead_; }
  /// The connection was lost: drops the rest of begun messages; nothing is in flight.
  void restart();
  /// Drops all messages.
  void clear();

  bool empty() const { return waiting_ == 0; }
  /// Messages that next() has not completed.
  std::uint64_t waiting() const { return waiting_; }
  std::uint64_t under_way() const { return under_way_; }
  std::uint64_t messages() const { return messages_; }
  /// Messages that have begun on this connection.
  std::uint64_t begun() const { return begun_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Pair {
    Address from, to;
    std::deque<Message> messages;
    std::uint64_t next_order = 0;
    // Of the first message:
    std::shared_ptr<const Packing> packing;  // null until its turn
    // After its letter:
    bool begun = false;
    std::uint64_t number = 0;
    std::uint64_t left = 0;
    BlobPlace place;
  };
  bool room_for(std::uint64_t cost) const;
  bool pack_first(Pair& pair);
  Frame letter(Pair& pair);
  std::optional<Frame> chunk(Pair& pair, std::uint64_t most);
  std::optional<Frame> next_small();
  std::optional<Frame> next_bulk();
  void end_turn(Pair& pair, bool message_done);
  void forget_first(Pair& pair);

  const std::uint64_t window_;
  const std::uint64_t chunk_;
  Lender* lender_ = nullptr;
  bool bulk_ = false;
  std::map<std::pair<Address, Address>, Pair> pairs_;
  // Pairs with messages; in bulk_turns_ if the first message uses the bulk connection.
  std::deque<Pair*> turns_, bulk_turns_;
  int bulk_ahead_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t under_way_ = 0;
  std::uint64_t waiting_ = 0, messages_ = 0, bytes_ = 0, begun_ = 0;
};

}  // namespace leeway::cluster
