#include "sim/network.hpp"

#include <algorithm>

#include "messages/blobs.hpp"
#include "sim/chance.hpp"

namespace leeway::sim {

namespace {

constexpr std::uint64_t kNetworkStream = 0x6e6574;

}  // namespace

std::size_t bytes_of(const Message& message) {
  return message.header().size_bytes() + blob_bytes(message);
}

Network::Network(const World& world, std::uint64_t seed)
    : world_(world), rng_(Rng::stream(seed, kNetworkStream)) {}

Duration Network::latency_of(Duration usual) {
  return usual + scaled(usual, world_.jitter * rng_.uniform());
}

Duration Network::transfer(std::size_t bytes) const {
  if (world_.link_bytes_per_second <= 0) return {};
  return time_of(static_cast<double>(bytes), world_.link_bytes_per_second);
}

Instant Network::arrival(ActorIndex from, MachineIndex from_node, ActorIndex to,
                         MachineIndex to_node, std::size_t bytes, Instant now, Duration extra) {
  Instant at = now;
  if (from_node == to_node) {
    at = now + latency_of(world_.local_latency);
  } else {
    const Duration time = transfer(bytes);
    Links& sender = nodes_[from_node];
    Links& receiver = nodes_[to_node];
    const Duration out = scaled(time, sender.slow_down), in = scaled(time, receiver.slow_down);
    // The first byte leaves when the link is free. The last one arrives after earlier messages.
    const Instant leaves = std::max(now, sender.out_free);
    sender.out_free = leaves + out;
    at = std::max(leaves + latency_of(world_.latency), receiver.in_free) + std::max(out, in);
    receiver.in_free = at;
    delayed_ |= extra > Duration{};
    if (time > Duration{} && !delayed_) return at;  // the receiver's link keeps the order
  }
  const Instant arrives = in_order(from, to, at + extra);
  // A longer message that follows returns above and must not overtake this one.
  if (from_node != to_node && !delayed_)
    nodes_[to_node].in_free = std::max(nodes_[to_node].in_free, arrives);
  return arrives;
}

Instant Network::in_order(ActorIndex from, ActorIndex to, Instant at) {
  Instant& last = last_[std::uint64_t{from} << 32 | to];
  last = std::max(at, last + nanoseconds(1));
  return last;
}

}  // namespace leeway::sim
