#pragma once
// Network: when a message arrives. Each node has one link to the others, with a queue each way, so
// that many pushes to one shard wait for each other; messages between two actors stay in order.
#include <unordered_map>
#include <vector>

#include "core/rng.hpp"
#include "messages/message.hpp"
#include "sim/world.hpp"

namespace leeway::sim {

using ActorIndex = std::uint32_t;
using NodeIndex = std::uint32_t;

/// What a message takes on a link.
std::size_t bytes_of(const Message& message);

class Network {
 public:
  Network(const World& world, std::uint64_t seed);

  void add_node() { nodes_.push_back({}); }

  /// When `bytes` sent now by an actor on one node reach an actor on another, or the same. Takes up
  /// the links meanwhile. `extra` comes on top, and what is sent later does not overtake.
  Instant arrival(ActorIndex from, NodeIndex from_node, ActorIndex to, NodeIndex to_node,
                  std::size_t bytes, Instant now, Duration extra = {});
  /// What could arrive at that time does so, but not before what was sent earlier.
  Instant in_order(ActorIndex from, ActorIndex to, Instant at);
  /// The links of a node take `factor` times as long for each byte, on top of what was so before.
  void slow_node(NodeIndex node, double factor) { nodes_[node].slow_down *= factor; }
  void restore_node(NodeIndex node, double factor) { nodes_[node].slow_down /= factor; }

 private:
  struct Links {
    Instant out_free, in_free;  // when they have done with what was sent so far
    double slow_down = 1;
  };
  Duration latency_of(Duration usual);
  Duration transfer(std::size_t bytes) const;

  const World world_;
  bool delayed_ = false;  // something once took longer than the links alone make it
  Rng rng_;
  std::vector<Links> nodes_;
  /// By sender and receiver, where no link keeps the order; never walked through.
  std::unordered_map<std::uint64_t, Instant> last_;
};

}  // namespace leeway::sim
