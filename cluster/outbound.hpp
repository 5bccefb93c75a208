#pragma once
// Outbound: what waits to be sent to one peer, and whose turn it is.
//
// Messages of one pair of actors leave in order; pairs take turns, a frame each, so that a small
// message waits for no tensors but those of its own pair. Frames that the peer has not credited are
// under way; next() gives none that would bring them above the window. On a bulk connection the
// window is TCP's: of frames for it a few are given ahead of those that have been sent. Not safe
// for many threads.
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "cluster/frame.hpp"

namespace leeway::cluster {

class Outbound {
 public:
  /// Chunks are of `chunk_bytes`, or of a quarter of the window when that is smaller.
  Outbound(std::uint64_t window_bytes, std::uint64_t chunk_bytes);

  /// From now on large blobs are lent where that is possible; null: none is.
  void lend_by(Lender* lender) { lender_ = lender; }
  /// Whether large blobs of messages that begin from now on travel on a bulk connection.
  void use_bulk(bool use) { bulk_ = use; }
  /// Blobs are where the processor can read them.
  void put(Address from, Address to, Message message);
  /// The next frame that may go, without its token.
  std::optional<Frame> next();
  /// The peer has put so many bytes in place.
  void credited(std::uint64_t bytes);
  /// A frame for the bulk connection has been sent.
  void bulk_sent() { --bulk_ahead_; }
  /// The connection was lost: nothing is under way, and of what had begun the rest is not sent.
  void restart();
  /// Forgets all.
  void clear();

  bool empty() const { return waiting_ == 0; }
  /// Messages of which not all has been given by next().
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
    // Of the first:
    std::shared_ptr<const Packing> packing;  // null until it is its turn
    // And once its letter is gone:
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
  // Those with messages; in bulk_turns_ if the first of these travels, or will, on the bulk
  // connection.
  std::deque<Pair*> turns_, bulk_turns_;
  int bulk_ahead_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t under_way_ = 0;
  std::uint64_t waiting_ = 0, messages_ = 0, bytes_ = 0, begun_ = 0;
};

}  // namespace leeway::cluster
