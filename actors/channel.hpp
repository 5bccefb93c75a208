#pragma once
// Channel: one end of a conversation of two roles in which no message is lost, repeated or
// overtaken, even if the link between them breaks.
//
// Each end numbers its messages, keeps them until the other end acknowledges them, and sends them
// again when the link works again. Every message acknowledges all that were received before it.
#include <cstdint>
#include <deque>
#include <utility>

#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class Channel {
 public:
  explicit Channel(Address peer) : peer_(peer) {}

  void send(Body body, Outbox& out);
  /// Takes note of the numbers of a message of the peer. False if the message was received before,
  /// or an earlier one is missing. Accepts messages outside the channel.
  bool receive(const Envelope& envelope);
  /// The link to the peer works again: repeats all messages without an acknowledgement.
  void send_again(Outbox& out) const;
  /// Acknowledges what no message has acknowledged yet. Call it regularly.
  void acknowledge(Outbox& out);
  msg::ChannelState save() const;
  void restore(const msg::ChannelState& state);

  /// Number of messages without an acknowledgement.
  std::size_t unacknowledged() const { return kept_.size(); }

 private:
  Address peer_;
  std::uint64_t sent_ = 0, received_ = 0;
  bool owes_ = false;                                   // an acknowledgement
  std::deque<std::pair<std::uint64_t, Message>> kept_;  // by number
};

}  // namespace leeway
