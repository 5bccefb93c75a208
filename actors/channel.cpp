#include "actors/channel.hpp"

#include "core/mutant.hpp"

namespace leeway {

void Channel::send(Body body, Outbox& out) {
  ++sent_;
  owes_ = false;
  const Message message =
      encode({.sequence = sent_, .acknowledged = received_, .body = std::move(body)});
  kept_.emplace_back(sent_, message);
  out.send(peer_, message);
}

bool Channel::receive(const Envelope& envelope) {
  while (!kept_.empty() && kept_.front().first <= envelope.acknowledged) kept_.pop_front();
  if (envelope.sequence == 0) return true;
  owes_ = true;  // also for a repeat: the last acknowledgement may be lost
  if (planted(Mutant::repeated_order_obeyed) && envelope.sequence <= received_) return true;
  if (envelope.sequence != received_ + 1) return false;
  ++received_;
  return true;
}

void Channel::send_again(Outbox& out) const {
  if (planted(Mutant::order_not_sent_again)) return;
  for (const auto& [number, message] : kept_) out.send(peer_, message);
}

msg::ChannelState Channel::save() const {
  msg::ChannelState state{sent_, received_, owes_, {}};
  for (const auto& [number, message] : kept_) state.kept.push_back({number, message});
  return state;
}

void Channel::restore(const msg::ChannelState& state) {
  sent_ = state.sent;
  received_ = state.received;
  owes_ = state.owes;
  kept_.clear();
  for (const auto& kept : state.kept) kept_.emplace_back(kept.number, kept.message);
}

void Channel::acknowledge(Outbox& out) {
  if (std::exchange(owes_, false))
    out.send(peer_, encode({.acknowledged = received_, .body = msg::Received{}}));
}

}  // namespace leeway
