#include "sim/network.hpp"

#include <algorithm>

#include "sim/chance.hpp"

namespace leeway::sim {

namespace {

constexpr std::uint64_t kNetworkStream = 0x6e6574;

}  // namespace

Network::Network(const World& world, std::uint64_t seed)
    : world_(world), rng_(Rng::stream(seed, kNetworkStream)) {}

Duration Network::latency_of(Duration usual) {
  return usual + scaled(usual, world_.jitter * rng_.uniform());
}

Duration Network::transfer(std::size_t bytes) const {
  if (world_.link_bytes_per_second <= 0) return {};
  return time_of(static_cast<double>(bytes), world_.link_bytes_per_second);
}

Instant Network::arrival(ActorIndex from, NodeIndex from_node, ActorIndex to, NodeIndex to_node,
                         std::size_t bytes, Instant now) {
  Instant at = now;
  if (from_node == to_node) {
    at = now + latency_of(world_.local_latency);
  } else {
    const Duration time = transfer(bytes);
    auto& out = nodes_[from_node].out_free;
    auto& in = nodes_[to_node].in_free;
    // The first byte leaves when the link is free, and the last one arrives behind all that came
    // before.
    const Instant leaves = std::max(now, out);
    out = leaves + time;
    at = std::max(leaves + latency_of(world_.latency), in) + time;
    in = at;
    if (time > Duration{}) return at;  // behind all that arrived there before
  }
  Instant& last = last_[std::uint64_t{from} << 32 | to];
  last = std::max(at, last + nanoseconds(1));
  return last;
}

}  // namespace leeway::sim
